"""Runs that are not over, as any ttx of this host sees them, and how to end one."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ttstack.errors import Exit, TtxError, UsageError
from ttstack.host import process
from ttstack.run.errors import RunError, RunRefusedError
from ttstack.run.journal import close_left, store_of
from ttstack.run.minding import settle_left
from ttstack.run.runtime import find_runtime
from ttstack.run.state import OVER, run_folders
from ttstack.run.stop import engine_of, stop_engine
from ttstack.run.waiting import longest_stop, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ttstack.run.runtime import Part
    from ttstack.run.state import RunFolder, State

_CLOSE_S = 10.0  # what a supervisor may take to close the record

LiveStatus = Literal["booting", "ready", "stopping", "dirty", "orphaned", "lost", "stopped"]
"""orphaned: the engine runs and its supervisor is gone; lost: both are gone and the run was never settled."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One run, and what of it is alive."""

    folder: RunFolder
    state: State
    supervised: bool
    engine: tuple[Part, ...]
    trouble: str = ""  # why it could not be learned what of the engine is left

    @property
    def status(self) -> LiveStatus:
        """What it comes down to."""
        if self.state.phase == "dirty":
            return "dirty" if self.engine else "stopped"
        if self.supervised or self.state.phase == "stopped":
            return self.state.phase
        return "orphaned" if self.engine or self.trouble else "lost"

    @property
    def live(self) -> bool:
        """Whether there is anything to stop."""
        return bool(self.engine) or (self.supervised and self.state.phase not in OVER)


def look_at(folder: RunFolder) -> LiveRun | None:
    """Look at one run; None when it never came to a state."""
    state = folder.read()
    if state is None:
        return None
    here = state.boot_id == process.boot_id()
    supervised = _supervised(state)
    if state.phase == "stopped" or not (here or state.runtime != "process"):  # a container outlives a reboot
        return LiveRun(folder, state, supervised, ())
    try:
        return LiveRun(folder, state, supervised, engine_of(state))
    except RunRefusedError as error:
        return LiveRun(folder, state, supervised, (), error.message)


def _supervised(state: State) -> bool:
    return state.boot_id == process.boot_id() and process.alive(state.supervisor)


def runs(state: Path, left_out: Callable[[str], None] = lambda _: None) -> tuple[LiveRun, ...]:
    """Look at all runs of this host, oldest first. ``left_out`` is told of each whose state cannot be read."""
    found = []
    for folder in run_folders(state):
        try:
            run = look_at(folder)
        except TtxError as error:
            left_out(f"run {folder.run} is left out: {error.message}")
            continue
        if run is not None:
            found.append(run)
    return tuple(found)


def choose(found: Sequence[LiveRun], name: str | None) -> LiveRun:
    """Pick the run that is meant: by run id or arm; without a name, the only one that lives.

    Raises UsageError when none or several fit.
    """
    live = [run for run in found if run.live]
    listed = ", ".join(f"{run.state.run} (arm {run.state.arm})" for run in live)
    if name is None:
        candidates, what, way_out = live, "nothing runs here", "what ran: ttx records ls"
    else:
        by_id = [run for run in found if run.state.run == name]
        candidates = by_id or [run for run in live if run.state.arm == name]
        what = f"no run {name!r} here, and no arm of that name runs"
        way_out = f"what runs: {listed}" if listed else "nothing runs here; what ran: ttx records ls"
    if not candidates:
        raise UsageError(what, hint=way_out, reason="no_such_run")
    if len(candidates) > 1:
        way_out = "name one by its run id" if name else "name one by its run id or arm"
        listed = ", ".join(f"{run.state.run} (arm {run.state.arm})" for run in candidates)
        raise UsageError(f"several runs fit: {listed}", hint=way_out, reason="ambiguous_run")
    return candidates[0]


def down(run: LiveRun, *, kill: bool, tell: Callable[[str], None]) -> State:
    """Stop a run's engine gracefully and settle its record; with ``kill``, by SIGKILL. Returns its last state.

    Raises RunError (reason ``stop_failed``) when the engine does not stop, HostError when we may not signal it.
    """
    if kill and run.engine:
        tell("killing the engine: its cards are not torn down and may need a reset (tt-smi -r, with no holder left)")
        find_runtime(run.state.runtime).stop(run.engine, signal.SIGKILL)
    state = run.state
    if run.supervised and (state.phase not in OVER or _holding(state)):
        grace = f"it gets {state.stop_grace_s} s to close its cards"
        tell(f"asking the supervisor (pid {state.supervisor.pid}) to stop the engine: {grace}")
        process.send(state.supervisor, signal.SIGTERM)
        state = _wait(run)
    done = state.phase in OVER and not kill and not engine_of(state)
    if not (done or state.phase == "stopped" or _holding(state)):
        if engine_of(state):
            tell("the engine has no supervisor any more: asking it to stop")
        state = stop_engine(run.folder, state, kill=kill)
    if not _supervised(state):
        settle_left(run.folder, state.text or "its supervisor died, and `ttx down` ended the engine")
    _settle(run, state)
    if state.phase == "dirty" and engine_of(state):
        hint = f"`ttx down {state.run} --kill` kills it; its cards may need a reset then"
        raise RunError(state.text, hint=hint, reason="stop_failed")
    return state


def _holding(state: State) -> bool:
    """Whether a supervisor goes on with a container that did not end, or could not be removed, and holds its cards."""
    return state.phase == "dirty" and state.runtime != "process" and _supervised(state)


def _wait(run: LiveRun) -> State:
    supervisor, grace = run.state.supervisor, run.state.stop_grace_s
    wanted = {"stopped"} if run.state.phase == "dirty" else OVER

    def over() -> bool:
        seen = run.folder.read()
        return (seen is not None and seen.phase in wanted) or not process.alive(supervisor)

    wait_until(over, longest_stop(grace))
    return run.folder.read() or run.state


def _settle(run: LiveRun, state: State) -> None:
    """Close the record, unless a supervisor (or through it a ttx) lives that does it.

    A supervisor that was told to stop writes the close a moment after it wrote its last state.
    """
    if run.supervised and not state.attended and state.phase != "dirty":
        wait_until(lambda: not process.alive(state.supervisor), _CLOSE_S)
    if _supervised(state):
        return
    text = "the supervisor of the engine died; `ttx down` settled the run"
    close_left(store_of(run.folder.state), run.folder, "aborted", Exit.FAILED, "supervisor_died", text)
