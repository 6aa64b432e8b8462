"""Stopping an engine whose supervisor is gone."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.host.process import boot_id
from ttstack.run.runtime import find_runtime
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from ttstack.run.runtime import Part, Runtime
    from ttstack.run.state import RunFolder, State


def engine_of(state: State) -> tuple[Part, ...]:
    """Name what is left of a run's engine. Raises HostError and RunRefusedError."""
    # The numbers of another boot's processes are other processes' by now.
    leader = state.engine if state.boot_id == boot_id() else None
    return find_runtime(state.runtime).find(state.run, leader)


def stop_engine(folder: RunFolder, state: State, *, kill: bool = False) -> State:
    """Ask an engine to stop, wait out its grace, write down how that went and return it.

    Its first process is asked, and then those that are left. With ``kill`` all are killed at once: the card is not
    torn down then. Only for engines without a live supervisor. Raises HostError when signals are not allowed.
    """
    runtime = find_runtime(state.runtime)
    found = engine_of(state)
    killed = False
    if found and not kill:
        _ask(runtime, state, signal.SIGTERM)
    elif found:
        killed = True
        runtime.stop(found, signal.SIGKILL)
        runtime.clear(found)
        _wait(state, state.stop_grace_s)
    if engine_of(state):
        text = f"the engine did not stop within {state.stop_grace_s} s of being asked to"
        state = replace(state, phase="dirty", reason="stop_failed", text=text)
    else:
        text = "the engine was killed; its card may need a reset" if killed else state.text
        state = replace(state, phase="stopped", reason="killed" if killed else state.reason, text=text)
    folder.write(state)
    return state


def _ask(runtime: Runtime, state: State, number: signal.Signals) -> None:
    for first in (True, False):
        found = engine_of(state)
        runtime.stop(found[:1] if first else found, number)
        runtime.clear(found)
        if _wait(state, state.stop_grace_s, only=found[:1] if first else None):
            return


def _wait(state: State, seconds: float, only: tuple[Part, ...] | None = None) -> bool:
    """Whether the whole engine ended; with ``only`` the wait is over as well when these ended."""

    def ended() -> bool:
        found = engine_of(state)
        return not found or (only is not None and not set(only) & set(found))

    wait_until(ended, seconds)
    return not engine_of(state)
