"""Cards of a container that did not end, or of which nothing can be learned."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from test_client import DOWN, ID, LAUNCH

from ttstack.host.types import Places
from ttstack.run import supervisor as supervisor_module
from ttstack.run.client import Client
from ttstack.run.ending import Ending
from ttstack.run.link import Orders
from ttstack.run.minding import BuildMinded
from ttstack.run.plan import Plan
from ttstack.sim.host import make_host
from ttstack.slots.take import Request, acquire
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fake_docker import FakeDocker

    from ttstack.run.state import RunFolder


class Stuck:
    """An engine that does not end before it is told to."""

    container, margin_s, leader = ID, 0.0, None

    def __init__(self) -> None:
        self.asked, self.over = 0, False
        self.heard: Callable[[], None] = lambda: None

    def ended(self) -> bool:
        return self.over

    def exit_code(self) -> int | None:
        return None

    def note(self) -> str:
        return ""

    def ask_to_stop(self) -> None:
        self.asked += 1

    def clear(self) -> bool:
        self.heard()
        return self.over


def test_cards_of_a_container_that_does_not_end_stay_dirty_until_it_does(tmp_path: Path, folder: RunFolder) -> None:
    roots = make_host(tmp_path / "tree", cards=1)
    places = Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)
    slot = acquire(Request(1, (), 0), places)
    launch = replace(LAUNCH, stop_grace_s=0, cache_dir=str(tmp_path))
    plan = Plan("R", "quick", launch, {}, 60, slot.cards, places.locks, None, simulated=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        supervisor = supervisor_module.Supervisor(folder, Orders(theirs), plan, slot, BuildMinded(plan, None))
        engine = Stuck()
        supervisor.engine = engine
        supervisor._stop(engine, Ending("boot_timeout", "it was not ready"))
        state = folder.read()
        assert state is not None
        assert (state.phase, state.reason) == ("dirty", "stop_failed")
        assert "it was not ready" in state.text
        (view,) = look(places)
        assert (view.state, engine.asked) == ("dirty", 1)
        looked: list[str] = []

        def heard() -> None:
            looked.append(look(places)[0].state)
            engine.over = len(looked) > 1

        engine.heard = heard
        supervisor.terminated = True  # `ttx down` asks once more
        begun = time.monotonic()
        supervisor.hold()
        assert looked == ["dirty", "dirty"]
        assert engine.asked == 2
        assert time.monotonic() - begun < 30
    last = folder.read()
    assert last is not None
    assert (last.phase, last.reason) == ("stopped", "stop_failed")
    assert look(places)[0].state == "free"


def test_what_cannot_be_learned_of_a_failed_start_keeps_the_cards(
    tmp_path: Path, folder: RunFolder, fake: FakeDocker
) -> None:
    roots = make_host(tmp_path / "tree", cards=1)
    places = Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)
    for run_error, phase in ((DOWN, "stopped"), ("docker: odd\n", "dirty")):
        slot = acquire(Request(1, (), 0), places)
        plan = Plan("R", "quick", LAUNCH, {}, 60, slot.cards, places.locks, None, simulated=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = supervisor_module.Supervisor(folder, Orders(theirs), plan, slot, BuildMinded(plan, None))
        fake.answer(("^run", 125, "", run_error), ("^ps", 1, "", "odd\n"))
        supervisor.supervise()
        ours.close()
        state = folder.read()
        assert state is not None
        assert state.phase == phase
    assert slot.released is False
    assert look(places)[0].state == "dirty"
    fake.answer(("^ps", 0, "", ""))
    supervisor.hold()
    assert look(places)[0].state == "free"
    assert Client("docker").of_run("R") == ()
