"""A run that lives, or lived, as every verb shows it: ``status``, ``up`` and ``down`` print one shape of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ttstack.host.types import ProcessId
from ttstack.records.build import jsonable

if TYPE_CHECKING:
    from ttstack.run.control import LiveRun


def note_of(run: LiveRun) -> str:
    """Say what a person should know of a run, or do about it; "" when there is nothing."""
    if run.status == "orphaned":
        return f"its supervisor is gone: ttx down {run.state.run}"
    if run.status == "lost":
        return f"its supervisor and its engine are gone: ttx down {run.state.run} settles the record"
    if run.status == "booting":
        return f"step {run.state.step}" if run.state.step else ""
    return run.state.text


def entry_of(run: LiveRun) -> dict[str, Any]:
    """Describe a run for programs."""
    return {
        "run": run.state.run,
        "arm": run.state.arm,
        "status": run.status,
        "note": note_of(run),
        "url": run.state.url,
        "log": str(run.folder.log),
        "last_line": (run.folder.tail(1) or [""])[0],
        "engine_pids": [part.pid for part in run.engine if isinstance(part, ProcessId)],
        "state": jsonable(run.state),
    }
