"""A/Bs of the simulated engine, from the command line to the verdict."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import World


def slow(path: Path, milliseconds: int) -> Path:
    """Let an arm take this long for a token."""
    path.write_text(path.read_text().replace("sim-token-ms = 0", f"sim-token-ms = {milliseconds}"))
    return path


def opened(world: World) -> list[dict[str, Any]]:
    """Give the places of the runs that were opened for an A/B."""
    return [place for run in world.store.read().runs if (place := run.raw_open.get("ab")) is not None]


@pytest.mark.host  # a dozen boots: too long for a sandbox that runs all rooms; test_ab_conduct.py has its parts there
def test_two_arms_change_cards_and_a_killed_ab_goes_on(world: World) -> None:
    world.arm("quick")
    slow(world.arm("slow"), 2)
    words = ("ab", "quick", "slow", "--pairs", "4", "--metric", "request_s", "--json")
    first = world.start(*words)
    until = time.monotonic() + 60
    while len(opened(world)) < 3 and time.monotonic() < until and first.poll() is None:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    _, err = first.communicate(timeout=60)
    name = opened(world)[0]["id"]
    assert "nobody knows what so many pairs can show" in err
    assert "none can be added to them" in err
    unfinished = json.loads(world.ttx("ab", "show", name, "--json", code=5))
    assert (unfinished["verdict"], unfinished["finished"], unfinished["metrics"]) == ("insufficient", False, [])
    assert all(cell["values"] == {} for cell in unfinished["cells"])

    made = json.loads(world.ttx("ab", "--resume", name, "--json"))
    assert (made["verdict"], made["exit_code"], made["concurrent"]) == ("worse", 0, True)
    assert made["pairs"] == {"planned": 4, "counted": 4, "missing": 0}
    assert made["outputs"]["equal"]
    counting = [cell for cell in made["cells"] if cell["counts"]]
    assert len(counting) == 8
    assert {cell["pair"] for cell in made["cells"] if not cell["counts"]} <= {1}
    for side in ("A", "B"):
        cards = [cell["cards"] for cell in counting if cell["side"] == side]
        assert sorted(map(tuple, cards)).count(tuple(cards[0])) == 2
    assert all(cell["cards"] == cell["cards_asked"] for cell in counting)
    assert [each["key"] for each in made["declared"]] == ["arm.engine.args.sim-token-ms", "arm.engine.port"]
    records = [world.record(cell["run"]) for cell in counting]
    assert len({run.opened.asked.arm_digest for run in records}) == 2  # whichever card it was
    assert {run.outcome for run in records} == {"ok"}
    assert json.loads(world.ttx("ab", "show", "--json")) == made
    assert "worse" in world.ttx("ab", "ls")
    assert "[" in world.ttx("ab", "show", name)
    world.ttx("ab", "--resume", name, code=3)
    assert "none can be added to its pairs" in world.stderr
    world.ttx("ab", "--resume", name, "--pairs", "8", code=2)
    assert world.clean()


def test_an_arm_whose_identity_is_refused_has_no_verdict(world: World) -> None:
    world.arm("quick")
    world.arm("false", "wrong-root")
    made = json.loads(world.ttx("ab", "quick", "false", "--pairs", "4", "--json", code=4))
    assert (made["verdict"], made["pairs"]) == ("insufficient", {"planned": 4, "counted": 0, "missing": 2})
    against = [cell["against"] for cell in made["cells"] if cell["side"] == "B"]
    assert len(against) == 2
    assert all("served_root" in why for (why,) in against)
    assert world.clean()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("quick", "quick", "--pairs", "5"), "--pairs 5 is odd"),
        (("quick", "quick", "--pairs", "2"), "cannot tell a difference from noise"),
        (("quick", "quick"), "--pairs is needed"),
        (("quick",), "an A/B has two arms"),
        (("quick", "nope", "--pairs", "4"), "nope"),
        (("quick", "quick", "--pairs", "4", "--metric", "cpu_share"), "more or less"),
        (("quick", "quick", "--pairs", "4", "--suite", "nope"), "unknown suite"),
        (("--resume", "ab-nope"), "there is no A/B"),
        (("show",), "there is no A/B here"),
        (("power", "--effect", "2%"), "the noise is not known"),
        (("power", "--effect", "200%"), "not between"),
        (("power", "--effect", "0.0001", "--noise", "50%"), "do not show so little"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_run(
    world: World, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ttstack.cli.main import main  # noqa: PLC0415 - with this test's environment

    world.arm("quick")
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    assert main(["--arms", str(world.base / "arms"), "ab", *words]) == 2
    assert says in capsys.readouterr().err
    assert not world.store.path.exists()
