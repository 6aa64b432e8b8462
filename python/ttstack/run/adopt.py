"""Give an engine whose supervisor died a new one."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ttstack.errors import UsageError
from ttstack.host import process
from ttstack.run.caches import retake_cache
from ttstack.run.errors import RunError, RunRefusedError
from ttstack.run.link import spawn
from ttstack.run.plan import read_plan
from ttstack.run.runtime import find_runtime
from ttstack.run.waiting import wait_until
from ttstack.slots.lock import guarded
from ttstack.slots.take import retake

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.host.types import ProcessId
    from ttstack.run.control import LiveRun
    from ttstack.run.state import RunFolder, State

_START_S = 30.0


def adopt(run: LiveRun, nap: Callable[[float], None]) -> State:
    """Start a supervisor for an orphaned run, which then goes on as if it had never been without; return its state.

    ``nap`` sleeps, and may raise to give up. Raises UsageError when the run is no orphan, BusyError when another has
    its cards, RunError when the new supervisor does not begin.
    """
    # One at a time: the second finds a supervisor.
    with guarded(run.folder.path / "adopt.lock", nap):
        state = run.folder.read() or run.state
        if process.alive(state.supervisor):
            raise UsageError(f"run {state.run} has its supervisor (pid {state.supervisor.pid})", reason="supervised")
        if run.trouble:
            raise RunRefusedError(run.trouble, reason="runtime_down")
        if not find_runtime(state.runtime).find(state.run, state.engine):
            raise UsageError(
                f"the engine of run {state.run} is gone, too", hint=f"`ttx down {state.run}` settles the record"
            )
        if state.phase not in {"booting", "ready"}:
            raise UsageError(
                f"run {state.run} is {state.phase}: there is nothing to go on with",
                hint=f"`ttx down {state.run}` ends it",
                reason="not_running",
            )
        supervisor = _start(run.folder, state)
    found = run.folder.read()
    if found is None or found.supervisor != supervisor:
        hint = f"see {run.folder.supervisor_log}"
        raise RunError("the new supervisor did not begin", hint=hint, reason="supervisor_died")
    return found


def _start(folder: RunFolder, state: State) -> ProcessId:
    plan = read_plan(folder)
    # A process has kept its copies of the locks; those of a container were its supervisor's alone.
    slot = None if state.runtime == "process" else retake(plan.cards, plan.locks, plan.legacy)
    with ExitStack() as undo:
        keys: tuple[int, ...] = ()
        if slot is not None:
            undo.callback(slot.let_go)
            cache = retake_cache(plan)
            undo.callback(os.close, cache)
            keys = (*slot.fds, cache)
        link = spawn(folder, adopting=True)
        link.send("start", keys)

    def begun() -> bool:
        seen = folder.read()
        return not link.alive() or (seen is not None and seen.supervisor == link.process)

    wait_until(begun, _START_S)
    link.close()
    return link.process
