"""Whenever ttx is stopped or killed: no engine, no slot, and a record that is closed or shown as aborted."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from ttstack.run.state import run_folder
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    import subprocess

    from conftest import World

SEED = int(os.environ.get("TTX_TEST_SEED") or random.SystemRandom().randrange(10**6))
ROUNDS = 12
LINES = 26  # of the checklist of a good run, about


def read_lines(ttx: subprocess.Popen[str], count: int) -> list[str]:
    """Read this many lines of the checklist, or all that there are."""
    assert ttx.stderr is not None
    lines = []
    for _ in range(count):
        line = ttx.stderr.readline()
        if not line:
            break
        lines.append(line)
    return lines


def check_left(world: World) -> None:
    assert wait_until(world.clean, 30), (world.engines(), world.slots())
    assert wait_until(lambda: world.supervisors() == [], 30)
    log = world.store.read()
    assert log.faults == ()
    for run in log.runs:
        assert run.closed is not None or run.outcome == "aborted"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_signal_at_any_moment(world: World, number: int) -> None:
    seed = f"{SEED}:{number}"
    print(f"TTX_TEST_SEED={SEED}, round {number}")  # noqa: T201 - so that a failure can be repeated
    dice = random.Random(seed)  # noqa: S311 - a moment, not a secret
    kind = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP][number % 4]
    world.arm()
    ttx = world.start("run", "quick", "--no-wait")
    seen = read_lines(ttx, dice.randrange(LINES))
    time.sleep(dice.random() * 0.1)
    ttx.send_signal(kind)
    if kind != signal.SIGKILL and dice.random() < 0.5:
        time.sleep(dice.random() * 0.1)
        ttx.send_signal(kind)  # a second one must not break the tidying up
    out, err = ttx.communicate(timeout=60)
    told = f"seed {seed}, {kind.name} after {seen[-1:]}: {ttx.returncode}\n{out}\n{err}"
    check_left(world)
    runs = world.store.read().runs
    if kind == signal.SIGKILL:
        assert ttx.returncode in {-kind, 0}, told
        return
    # Before it minds signals nothing is begun, and once the record is closed the run is over.
    unminded = {-kind, 1} if not runs else {-kind, 130} if runs[0].outcome == "ok" else set()
    assert ttx.returncode in {130, 0} | unminded, told
    assert len(runs) <= 1, told
    if runs:
        closed = runs[0].closed
        assert closed is not None, told
        assert closed.outcome == "interrupted" or ttx.returncode in {0, *unminded}, told
        assert closed.exit_code in {0, 130}, told


def wait_for_line(ttx: subprocess.Popen[str], text: str) -> None:
    for _ in range(200):
        (line,) = read_lines(ttx, 1) or [""]
        if text in line:
            return
        assert line, f"{text!r} never came"
    raise AssertionError(text)


def test_ctrl_c_while_an_engine_boots_waits_for_it_to_end(world: World) -> None:
    world.arm("slow", "hang:mesh")
    ttx = world.start("run", "slow", "--json")
    wait_for_line(ttx, "boot: device")
    assert world.slots() == ["held", "free"]
    for _ in range(3):
        ttx.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, _ = ttx.communicate(timeout=60)
    assert ttx.returncode == 130
    assert '"outcome": "interrupted"' in out
    check_left(world)
    assert world.store.read().runs[0].outcome == "interrupted"


def test_a_killed_ttx_leaves_a_supervisor_that_stops_the_engine_and_closes_the_record(world: World) -> None:
    world.arm("slow", "hang:mesh", boot_timeout_s=600)
    ttx = world.start("run", "slow")
    wait_for_line(ttx, "boot: device")
    os.killpg(ttx.pid, signal.SIGKILL)  # as when a terminal or a job goes away: the supervisor is in no group of ours
    ttx.communicate()
    check_left(world)
    (run,) = world.store.read().runs
    assert run.closed is not None
    state = run_folder(world.places.state, run.id).read()
    assert state is not None
    assert (state.phase, state.reason, state.exit_code) == ("stopped", "owner_died", 0)
    assert (run.closed.outcome, run.closed.reason) == ("aborted", "owner_died")


def test_ctrl_c_while_waiting_for_a_card_is_a_closed_record_and_no_place_in_the_line(world: World) -> None:
    world.arm("first", "hang:mesh", cards="count = 2")
    world.arm("second")
    holder = world.start("run", "first")
    wait_for_line(holder, "boot: device")
    ttx = world.start("run", "second")
    wait_for_line(ttx, "slot: card")
    ttx.send_signal(signal.SIGINT)
    ttx.communicate(timeout=30)
    assert ttx.returncode == 130
    holder.send_signal(signal.SIGTERM)
    holder.communicate(timeout=30)
    assert holder.returncode == 130
    check_left(world)
    assert [run.outcome for run in world.store.read().runs] == ["interrupted", "interrupted"]
