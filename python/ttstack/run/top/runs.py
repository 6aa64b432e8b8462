"""Runs that are not over: a thorough look that finds them, and a quick one at what changes each second."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ttstack.errors import TtxError
from ttstack.host import machine, ports, process
from ttstack.host.errors import HostError
from ttstack.run.control import look_at
from ttstack.run.runtime import find_runtime
from ttstack.run.state import run_folders

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ttstack.host.types import ProcessId
    from ttstack.run.control import LiveRun

_ASKED = re.compile(r'"GET /(?:metrics|health) HTTP/1\.[01]" 2\d\d')

SHOWN = frozenset({"booting", "ready", "stopping", "dirty", "orphaned"})
"""What ``ttx status`` shows, too: there is something to be seen, or to be done."""


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and what of it takes a look at all processes.

    ``checked``: it was ready, so it was looked who has its port; ``foreign``: who, when not its engine.
    """

    live: LiveRun
    processes: tuple[ProcessId, ...] = ()
    checked: bool = False
    foreign: str = ""

    @property
    def serves(self) -> bool:
        """Whether its server may be asked: it is ready, and the engine that was identified lives."""
        state = self.live.state
        if state.phase != "ready" or not self.checked or self.foreign or self.live.status not in {"ready", "orphaned"}:
            return False
        return process.alive(state.engine) if state.engine is not None else bool(self.live.engine)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a thorough look found. ``troubles``: what could not be looked at, a sentence each."""

    found: tuple[Found, ...] = ()
    troubles: tuple[str, ...] = ()


class Runs:
    """The runs of a state folder. What is over is read once: a run never comes back."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._over: set[str] = set()

    def look(self) -> Looked:
        """Look thoroughly. Raises OSError when the folder of runs cannot be listed."""
        found, troubles = [], []
        for folder in run_folders(self._state):
            if folder.run in self._over:
                continue
            try:
                run = look_at(folder)
                if run is None:
                    continue
                if run.state.phase == "stopped" and not run.supervised:
                    self._over.add(folder.run)
                if run.status in SHOWN:
                    found.append(_known(run))
            except TtxError as error:
                troubles.append(f"run {folder.run} is left out: {error.message}")
        return Looked(tuple(found), tuple(troubles))

    def mark(self) -> object:
        """Say something that changes when runs come or go."""
        try:
            return (self._state / "runs").stat().st_mtime_ns
        except OSError:
            return None


def again(found: Found) -> Found | None:
    """Look quickly at a run that was found: its state, and whether its supervisor lives; None when it is over."""
    state = found.live.state
    with suppress(HostError):  # one that cannot be read does not hide the others; the thorough look says so
        state = found.live.folder.read() or state
    supervised = state.boot_id == process.boot_id() and process.alive(state.supervisor)
    live = replace(found.live, state=state, supervised=supervised)
    return replace(found, live=live) if live.status in SHOWN else None


def telling_line(lines: Sequence[str]) -> str | None:
    """Give the last line of a log that is not about our own asking, which servers note; None when there is none."""
    return next((line for line in reversed(lines) if line.strip() and _ASKED.search(line) is None), None)


def age_s(run: LiveRun) -> float | None:
    """Say for how long a run has been there, in seconds."""
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(run.state.since)).total_seconds())
    except (TypeError, ValueError):
        return None


def memory_bytes(processes: Sequence[ProcessId]) -> int | None:
    """Add up what those of these processes that live have in memory; None when none does."""
    try:
        live = [each.pid for each in processes if process.alive(each)]
        return machine.resident_bytes(live) if live else None
    except HostError:
        return None


def _known(run: LiveRun) -> Found:
    processes: tuple[ProcessId, ...] = ()
    with suppress(TtxError):
        processes = find_runtime(run.state.runtime).processes(run.state)
    ready = run.state.phase == "ready"
    return Found(run, processes, ready, _foreign(run, processes) if ready else "")


def _foreign(run: LiveRun, processes: Sequence[ProcessId]) -> str:
    """Say who has the port of a run that is ready, when that is not its engine; "" when it is, or nobody else is seen.

    A container's port is docker's to give, which it was when the run was identified and is while the container lives.
    The descriptors of another user's engine cannot be seen; then only somebody who is seen to have the port counts.
    """
    if run.state.runtime != "process" or not processes:
        return ""
    try:
        inodes = ports.listening_inodes(run.state.port)
    except HostError:
        return ""
    family = [each.pid for each in processes]
    others = [inode for inode in inodes if not ports.owners(frozenset({inode}), family)]
    if not others:
        return ""
    who = ports.owners(frozenset(others))
    if not who and not all(map(_can_see, family)):
        return ""
    named = ", ".join(f"pid {pid} ({process.command(pid)})" for pid in who) or "a process that cannot be seen"
    return f"port {run.state.port} is that of {named}"


def _can_see(pid: int) -> bool:
    """Whether we may look at a process's descriptors."""
    try:
        os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - nothing but whether it may be listed matters
    except PermissionError:
        return False
    except OSError:
        return True  # it has ended, and has none
    return True
