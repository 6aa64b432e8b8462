"""``ttx adopt``: an engine whose supervisor died gets another."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.host import process
from ttstack.run.state import run_folder
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from conftest import World

    from ttstack.run.state import RunFolder, State


def _orphan(world: World, *, reap: bool = True) -> tuple[RunFolder, State]:
    run = world.execute(world.arm(), "up").run
    folder = run_folder(world.places.state, run)
    state = folder.read()
    assert state is not None
    process.send(state.supervisor, signal.SIGKILL)
    if reap:
        os.waitpid(state.supervisor.pid, 0)  # it is a child of this very process here
    return folder, state


def test_an_adopted_engine_is_watched_and_its_record_closed(world: World) -> None:
    folder, before = _orphan(world)
    (entry,) = json.loads(world.ttx("status", "--json"))
    assert entry["status"] == "orphaned"
    (listed,) = json.loads(world.ttx("records", "ls", "--json"))["runs"]
    assert listed["outcome"] == "aborted"
    assert f"ttx adopt {before.run}" in entry["note"]
    adopted = json.loads(world.ttx("adopt", "quick", "--json"))
    assert (adopted["status"], adopted["state"]["since"]) == ("ready", before.since)
    (pid,) = world.supervisors()
    assert adopted["state"]["supervisor"]["pid"] == pid != before.supervisor.pid
    assert "supervisor is gone" not in world.ttx("slot", "ls")
    assert world.slots() == ["held", "free"]
    (listed,) = json.loads(world.ttx("records", "ls", "--json"))["runs"]
    assert (listed["run"], listed["outcome"]) == (before.run, "running")  # its first owner is gone
    world.ttx("down", before.run)
    assert world.clean()
    closed = world.record(before.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("ok", "")
    assert closed.identity is not None
    assert closed.identity.verdict == "confirmed"
    last = folder.read()
    assert last is not None
    assert last.phase == "stopped"


def test_the_end_of_an_adopted_engine_is_seen(world: World) -> None:
    _, state = _orphan(world)
    world.ttx("adopt")
    (engine,) = world.engines()
    (pid,) = world.supervisors()
    supervisor, name = process.identify(pid), process.identify(engine)
    assert name is not None
    assert supervisor is not None
    process.send(name, signal.SIGKILL)

    assert wait_until(lambda: not process.alive(supervisor), 30)
    closed = world.record(state.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", "engine_died")
    assert "not known" in closed.text
    assert world.clean()


def test_who_has_a_supervisor_or_no_engine_is_not_adopted(world: World) -> None:
    run = world.execute(world.arm(), "up").run
    world.ttx("adopt", run, code=2)
    assert "has its supervisor" in world.stderr
    world.ttx("down")
    folder, state = _orphan(world)
    for pid in world.engines():
        name = process.identify(pid)
        assert name is not None
        process.send(name, signal.SIGKILL)
    world.ttx("adopt", state.run, code=2)
    assert f"ttx down {state.run}" in world.stderr
    assert folder.read() == state
    assert world.record(state.run).closed is None
    world.ttx("down", state.run)
    assert world.record(state.run).outcome == "aborted"


def test_what_is_being_stopped_is_not_adopted(world: World) -> None:
    folder, state = _orphan(world)
    folder.write(replace(state, phase="stopping"))
    world.ttx("adopt", state.run, code=2)
    assert "is stopping" in world.stderr
    world.ttx("down", state.run)
    assert world.clean()


def test_of_two_who_adopt_at_once_one_does(world: World) -> None:
    _, state = _orphan(world)
    both = [world.start("adopt", state.run) for _ in range(2)]
    for ttx in both:
        ttx.communicate(timeout=60)
    assert sorted(ttx.returncode for ttx in both) == [0, 2]
    assert len(world.supervisors()) == 1
    world.ttx("down")
    assert world.clean()
