"""An engine in a container answers before the copy of its log says that it is ready."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_client import ID, LAUNCH

from ttstack.host.types import Places
from ttstack.run import supervisor as supervisor_module
from ttstack.run.link import Orders
from ttstack.run.minding import BuildMinded
from ttstack.run.plan import Plan
from ttstack.run.state import RunFolder, run_folder
from ttstack.sim.host import make_host
from ttstack.slots.take import Request, acquire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READY = "INFO: Application startup complete.\n"


class Up:
    """A server that answers."""

    def __init__(self, url: str) -> None:
        del url

    def is_up(self) -> bool:
        return True


class Serving:
    """An engine that ends once its supervisor has it ready. ``say_after``: looks until its log says so."""

    leader = None
    margin_s = 0.0

    def __init__(self, folder: RunFolder, container: str, say_after: int | None) -> None:
        self.container = container
        self.phases: list[str] = []
        self._folder = folder
        self._say_after = say_after
        self._until = time.monotonic() + 20

    def ended(self) -> bool:
        state = self._folder.read()
        self.phases.append(state.phase if state else "")
        if len(self.phases) == self._say_after:
            self._folder.log.write_text(READY)
        return self.phases[-1] == "ready" or time.monotonic() > self._until


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[supervisor_module.Supervisor]:
    monkeypatch.setattr(supervisor_module, "Health", Up)
    roots = make_host(tmp_path / "tree", cards=1)
    places = Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)
    folder = run_folder(tmp_path / "state", "R")
    folder.path.mkdir(parents=True)
    slot = acquire(Request(1, (), 0), places)
    launch = replace(LAUNCH, cache_dir=str(tmp_path))
    plan = Plan("R", "quick", launch, {}, 60, slot.cards, places.locks, None, simulated=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        made = supervisor_module.Supervisor(folder, Orders(theirs), plan, slot, BuildMinded(plan, None))
        folder.write(made.state)
        yield made
    slot.release()


def _watched(supervisor: supervisor_module.Supervisor, container: str, say_after: int | None) -> list[str]:
    engine = Serving(supervisor.folder, container, say_after)
    supervisor._watch(engine)  # type: ignore[arg-type]
    assert engine.phases[-1] == "ready"
    return engine.phases


def test_it_is_ready_when_its_log_says_so(supervisor: supervisor_module.Supervisor) -> None:
    assert _watched(supervisor, ID, 5) == ["booting"] * 5 + ["ready"]


def test_a_log_that_never_says_so_is_not_waited_for_long(
    supervisor: supervisor_module.Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "_LOG_LAG_S", 0.3)
    assert len(_watched(supervisor, ID, None)) > 3


def test_a_process_writes_its_log_itself(supervisor: supervisor_module.Supervisor) -> None:
    assert _watched(supervisor, "", None) == ["booting", "ready"]
