"""Each fault of the simulated engine leads to the refusal or failure that it should, with a closed record."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from ttstack.cache.survey import survey

if TYPE_CHECKING:
    from conftest import World

# fault, exit code, outcome, reason, what the sentence (or the reason against quoting) says, more of the arm
TABLE: list[tuple[str, int, str, str, str, dict[str, Any]]] = [
    ("die:plugin", 1, "failed", "engine_failed", "failed to start", {}),
    ("die:cache", 1, "failed", "engine_failed", "failed to start", {}),
    ("hang:mesh", 1, "failed", "boot_timeout", "last step of the boot: device", {"boot_timeout_s": 1}),
    ("hang-lock", 1, "failed", "lock_wait", "another process uses", {}),
    ("silent-port", 4, "refused", "identity", "nobody listens", {}),
    ("missing-banner:multidevice", 4, "refused", "identity", "re:multidevice", {}),
    ("missing-banner:Cache directory", 4, "refused", "identity", "cache_dir could not be told", {}),
    ("wrong-root", 4, "refused", "identity", "served_root is", {}),
    ("wrong-max-len", 4, "refused", "identity", "max_model_len is 1024, not 2048", {}),
    ("wrong-cache-dir", 4, "refused", "identity", "cache_dir is", {}),
    ("no-usage", 4, "refused", "identity", "completion is", {}),
    ("die-serving:3", 1, "failed", "engine_died", "while it served", {}),
    ("ignore-sigterm", 1, "failed", "stop_failed", "did not stop within 1 s", {"stop_grace_s": 1}),
    ("stream-error", 5, "ok", "", "streaming", {}),
    ("stream-cut", 5, "ok", "", "streaming", {}),
    ("stream-differs", 5, "ok", "", "streaming", {}),
    ("not-deterministic", 5, "ok", "", "deterministic", {}),
    ("no-stop", 5, "ok", "", "stop", {}),
    ("bad-unicode", 5, "ok", "", "unicode", {}),
    ("no-limit", 5, "ok", "", "oversize", {}),
]


@pytest.mark.parametrize(("fault", "code", "outcome", "reason", "says", "more"), TABLE, ids=[row[0] for row in TABLE])
def test_a_fault_ends_as_it_should(  # noqa: PLR0913, PLR0917 - a row of the table
    world: World, fault: str, code: int, outcome: str, reason: str, says: str, more: dict[str, Any]
) -> None:
    result = world.execute(world.arm("faulty", fault, **more))
    assert result.exit_code == code, result.error
    run = world.record(result.run)
    closed = run.closed
    assert closed is not None
    assert (closed.outcome, closed.reason, closed.exit_code) == (outcome, reason, code)
    assert not closed.quotable
    assert says in closed.text or any(says in why for why in closed.quotable_reasons)
    assert (closed.measured is None) == (code in {1, 4} and reason not in {"stop_failed", "engine_died"})
    check_cache(world, outcome, closed.text)
    if reason == "stop_failed":
        assert world.slots() == ["dirty", "free"]
        assert len(world.engines()) == 1
    else:
        assert world.clean()
    if code in {4, 5}:
        assert result.state is not None
        assert (result.state.phase, result.state.reason) == ("stopped", "stopped")
    if code == 1 and reason.startswith(("engine", "boot", "lock")):
        assert world.recorder.tail == result_tail(world, result.run)
        assert 0 < len(world.recorder.tail) <= 20


def check_cache(world: World, outcome: str, text: str) -> None:
    """Complete once the engine was identified, else broken, and it says why."""
    (entry,) = (entry for entry in survey(world.places.cache) if entry.marker and entry.marker.kind == "tensors")
    identified = any(kind == "begin" and phase == "measure" for kind, phase in world.recorder.told)
    assert entry.standing == ("complete" if identified else "broken")
    if not identified:
        assert entry.text.removeprefix("what ran is not what was asked: ") in text
        assert outcome in {"failed", "refused"}


def result_tail(world: World, run: str) -> list[str]:
    return (world.places.state / "runs" / run / "engine.log").read_text().splitlines()[-20:]


def test_every_fault_there_is_has_a_row() -> None:
    from ttstack.sim.faults import FAULTS  # noqa: PLC0415

    elsewhere = {"hang", "corrupt-cache"}
    assert {fault.name for fault in FAULTS} <= {row[0].partition(":")[0] for row in TABLE} | elsewhere


def test_a_missing_ready_line_is_made_up_for_by_its_health(world: World) -> None:
    result = world.execute(world.arm("quiet", "missing-banner:Application startup complete"))
    assert result.exit_code == 0, result.error


def test_a_corrupt_cache_is_broken_at_once_and_the_next_boot_builds_it_anew(world: World) -> None:
    first = world.execute(world.arm("cold", "corrupt-cache"))
    assert (first.exit_code, first.error.reason) == (1, "cache_broken"), first.error  # type: ignore[union-attr]
    assert "truncated or corrupt" in str(first.error)
    assert world.record(first.run).closed.observed.cache == "cold"  # type: ignore[union-attr]
    second = world.execute(world.arm("warm"))
    assert second.exit_code == 0, second.error
    observed = world.record(second.run).closed.observed  # type: ignore[union-attr]
    assert observed is not None
    assert observed.cache == "cold"
    assert observed.cache_work is not None
    assert "truncated or corrupt" in observed.cache_work.replaced
    third = world.execute(world.arm("warm"))
    assert third.exit_code == 0, third.error
    assert world.record(third.run).closed.observed.cache == "hit"  # type: ignore[union-attr]


SERVES_AND_DIES = """
import time
print("Application startup complete.", flush=True)
time.sleep(0.2)
raise SystemExit(3)
"""


def test_an_engine_that_dies_while_it_is_identified_is_no_impostor(world: World) -> None:
    command = (sys.executable, "-c", SERVES_AND_DIES)
    result = world.execute(world.arm(), engine_command=command, listen_wait_s=2)
    assert (result.exit_code, result.error.reason) == (1, "engine_died")  # type: ignore[union-attr]
    assert world.clean()


KILLS_ITS_SUPERVISOR_AND_DIES = """
import os, signal, time
print("Application startup complete.", flush=True)
time.sleep(0.3)
os.kill(os.getppid(), signal.SIGKILL)
"""


def test_an_engine_that_ends_with_its_supervisor_is_no_impostor(world: World) -> None:
    command = (sys.executable, "-c", KILLS_ITS_SUPERVISOR_AND_DIES)
    result = world.execute(world.arm(), engine_command=command, listen_wait_s=2)
    assert (result.exit_code, result.error.reason) == (1, "supervisor_died")  # type: ignore[union-attr]
    assert world.clean()
