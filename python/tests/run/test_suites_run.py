"""``ttx run`` with suites, and ``ttx bench``, from the command line to the record."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.errors import BenchError
from ttstack.records.quotable import NO_ARM
from ttstack.run.foreign import extra_of, length_of, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import World

SHORT = ("--set", "prompt_tokens=64", "--set", "output_tokens=24", "--set", "runs=3", "--set", "concurrency=1,2")


@contextmanager
def engine(world: World, *flags: str) -> Iterator[str]:
    """Run the simulated engine as somebody else's server."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
    from suite_kit import sim_engine  # noqa: PLC0415 - it lies in another folder of tests

    quick = ("--sim-prefill-rate", "50000", "--sim-token-ms", "1", *flags)
    folder = world.base / "elsewhere"
    folder.mkdir()
    with sim_engine(folder, *quick, max_model_len=2048) as url:
        yield url


def busy(line: dict[str, object]) -> bool:
    """Whether this machine was too busy to measure, which is nothing against the code."""
    against = [str(reason) for reason in line["quotable_reasons"]]  # type: ignore[attr-defined]
    return any("the client" in reason or "all at once" in reason for reason in against)


def test_a_run_takes_the_suites_settings_to_the_record(world: World) -> None:
    arm = world.arm()
    file = world.base / "s.toml"
    file.write_text("[infbench]\nwaves = 3\nttft_s = 9.5\n")
    words = ("--suite", "infbench", "--settings", str(file), *SHORT[:6], "--json")
    done = world.start("run", arm.stem, *words)
    out, err = done.communicate(timeout=120)
    line = json.loads(out)
    assert done.returncode == (5 if busy(line) else 0), err
    record = world.record(line["run"])
    assert record.opened.asked.suite == "infbench"
    assert record.opened.asked.settings["waves"] == 3
    assert record.opened.asked.settings["runs"] == 3
    measured = record.closed.measured  # type: ignore[union-attr]
    assert measured is not None
    assert measured.settings["ttft_s"] == 9.5
    assert measured.settings["concurrency"] == [1, 2, 4, 8], "the arm's max-num-seqs is 8"
    assert len(str(measured.settings["seed"])) == 16, "the seed that was really used"
    assert [cell.name for cell in measured.cells] == ["b1", "c1", "c2", "c4", "c8"]
    assert len(measured.outputs) == 6
    assert "cell b1" in err
    assert world.clean()


def test_a_simulated_arm_is_asked_to_repeat_its_needle(world: World) -> None:
    settings = {"prompt_tokens": [256], "output_tokens": 24, "runs": 1, "warmup_runs": 0}
    outcome = world.execute(world.arm(), suite="sweep32k", settings=settings)
    measured = world.record(outcome.run).closed.measured  # type: ignore[union-attr]
    assert measured is not None
    assert {check.name: check.ok for check in measured.checks}["needle-256"]
    assert measured.settings["needle_rule"] == "echo"


def test_a_soak_looks_at_the_cards_of_the_run(world: World) -> None:
    settings = {"duration_s": 0.3, "prompt_tokens": [64], "output_tokens": [24], "sample_every_s": 0.1}
    outcome = world.execute(world.arm(), suite="soak", settings=settings)
    closed = world.record(outcome.run).closed
    assert closed is not None
    assert closed.measured is not None
    assert closed.observed is not None
    (card,) = closed.observed.cards
    assert len(closed.measured.values[f"card_{card.id}_clock_mhz"]) >= 3


def test_a_setting_that_cannot_be_is_refused_before_anything(world: World) -> None:
    world.arm()
    world.ttx("run", "quick", "--suite", "infbench", "--set", "runs=1", code=2)
    assert "at least 3" in world.stderr
    world.ttx("bench", "http://127.0.0.1:1", "--suite", "infbench", "--set", "rums=4", code=2)
    assert "did you mean runs" in world.stderr
    assert world.store.read().runs == ()


def test_any_server_can_be_measured_and_its_record_is_of_no_arm(world: World) -> None:
    output = world.base / "out.json"
    with engine(world) as url:
        done = world.start("bench", url, "--suite", "infbench", *SHORT, "--json", "-o", str(output))
        out, err = done.communicate(timeout=120)
    line = json.loads(out)
    assert done.returncode == (5 if busy(line) else 0), err
    assert json.loads(output.read_text()) == line
    assert line["quotable"] is False
    assert line["quotable_reasons"][0] == "no arm: what was measured is not held against one"
    assert line["exit_code"] == done.returncode
    record = world.record(line["run"])
    opened, closed = record.opened, record.closed
    assert closed is not None
    assert (opened.verb, opened.arm, opened.asked.url, opened.asked.suite) == ("bench", "", url, "infbench")
    assert closed.identity == NO_ARM
    assert closed.observed is not None
    assert closed.observed.max_model_len == 2048
    assert [phase.name for phase in closed.phases] == ["check", "measure"]
    assert [cell.name for cell in closed.measured.cells] == ["b1", "c1", "c2"]  # type: ignore[union-attr]
    assert not record.quotable


def test_the_table_for_people(world: World) -> None:
    with engine(world) as url:
        words = (
            "--suite",
            "sweep32k",
            "--set",
            "prompt_tokens=64,4096",
            "--set",
            "runs=1",
            "--set",
            "output_tokens=24",
        )
        done = world.start("bench", url, *words)
        out, err = done.communicate(timeout=120)
    assert done.returncode == 5, "the simulated engine cannot read, and nobody says that it is one"
    lines = out.splitlines()
    assert lines[0].split() == ["CELL", "N", "TTFT", "s", "PP", "tokens/s", "TG", "ms/token", "STATE"]
    assert lines[1].startswith("prompt-64 ")
    assert "not measured: 4096 + 24 tokens do not fit" in lines[2]
    assert any(line.startswith("needle-64: ") for line in lines), out
    assert "measure" in err


def test_a_token_is_sent_and_told_to_nobody(world: World) -> None:
    secret = "s3cret-token-value"  # noqa: S105 - that is the point
    world.environ["LLM_KEY"] = secret
    with engine(world, "--api-key", secret) as url:
        refused = world.ttx("bench", url, "--json", code=1)
        assert json.loads(refused)["outcome"] == "failed"
        out = world.ttx("bench", url, "--api-key-env", "LLM_KEY", "--json")
    assert json.loads(out)["outcome"] == "ok"
    assert secret not in out + world.stderr + (world.places.state / "records.jsonl").read_text()
    assert world.record(json.loads(out)["run"]).opened.asked.secrets == ("LLM_KEY",)
    world.ttx("bench", "http://127.0.0.1:1", "--api-key-env", "NO_SUCH_KEY", code=2)
    assert "there is no NO_SUCH_KEY" in world.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--model", "n"), "the server has no model 'n'"), (("--suite", "smok"), "did you mean smoke")],
)
def test_what_is_not_there_is_told(world: World, words: tuple[str, ...], said: str) -> None:
    with engine(world) as url:
        world.ttx("bench", url, *words, code=2 if "smok" in words else 1)
    assert said in world.stderr


def test_a_server_that_is_not_there_gets_a_record_that_says_so(world: World) -> None:
    line = json.loads(world.ttx("bench", "http://127.0.0.1:1", "--json", code=1))
    assert (line["outcome"], line["reason"], line["exit_code"]) == ("failed", "connect", 1)
    assert "cannot connect" in world.stderr
    world.ttx("bench", "not a url", code=2)
    assert len(world.store.read().runs) == 1


def test_a_soak_that_is_interrupted_closes_its_record(world: World) -> None:
    with engine(world) as url:
        words = ("--set", "prompt_tokens=64", "--set", "output_tokens=24", "--set", "duration_s=600")
        done = world.start("bench", url, "--suite", "soak", *words, "--json")
        assert done.stderr is not None
        while "answers" not in done.stderr.readline():
            assert done.poll() is None
        time.sleep(0.3)  # into the load
        done.send_signal(signal.SIGINT)
        out, _ = done.communicate(timeout=60)
    assert done.returncode == 130
    line = json.loads(out)
    assert (line["outcome"], line["measured"]) == ("interrupted", None)


def test_a_request_that_takes_long_is_interrupted_at_once(world: World) -> None:
    with engine(world, "--sim-prefill-rate", "0.5") as url:
        done = world.start("bench", url, "--suite", "infbench", "--json")
        assert done.stderr is not None
        while "tokens" not in done.stderr.readline():
            assert done.poll() is None
        time.sleep(0.5)  # into the first answer, which would take half a minute
        done.send_signal(signal.SIGTERM)
        out, _ = done.communicate(timeout=20)
    assert done.returncode == 130
    assert json.loads(out)["text"] == "stopped by SIGTERM"


class Models:
    """Stands in for a server's /v1/models."""

    def __init__(self, *rows: dict[str, object]) -> None:
        self.body = {"data": list(rows)}
        self.status = 200

    def get(self, _path: str) -> Models:
        return self


def test_which_model_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Models({"id": "a"}, {"id": "b"})
    monkeypatch.setattr("ttstack.run.foreign.Client", lambda *_: two)
    where = Endpoint("h", 1)
    assert served(where, "b") == {"id": "b"}
    with pytest.raises(BenchError, match="several models"):
        served(where, "")
    two.body = {"data": []}
    with pytest.raises(BenchError, match="lists no model"):
        served(where, "")


def test_what_a_server_says_of_itself() -> None:
    assert length_of({"max_model_len": 4096}) == 4096
    assert length_of({"meta": {"n_ctx": 512}}) == 512
    assert length_of({"id": "m"}) is None
    assert length_of({"max_model_len": "many"}) is None
    assert extra_of({"owned_by": "llamacpp"}) == {"cache_prompt": False}
    assert extra_of({"owned_by": "vllm"}) == {}
