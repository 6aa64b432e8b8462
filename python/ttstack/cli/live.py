"""A run that lives, or lived, as every verb shows it: ``status``, ``up`` and ``down`` print one shape of JSON."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.host import disk, machine
from ttstack.host.errors import HostError
from ttstack.host.types import ProcessId
from ttstack.records.build import jsonable
from ttstack.run.plan import read_plan
from ttstack.run.runtime import find_runtime

if TYPE_CHECKING:
    from ttstack.run.control import LiveRun


def note_of(run: LiveRun) -> str:
    """Say what a person should know of a run, or do about it; "" when there is nothing."""
    if run.status == "orphaned":
        if run.trouble:
            return f"its supervisor is gone, and its engine cannot be looked for: {run.trouble}"
        return f"its supervisor is gone: ttx adopt {run.state.run}, or ttx down {run.state.run}"
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
        "last_line": last_line(run),
        "engine_pids": [part.pid for part in run.engine if isinstance(part, ProcessId)],
        **resources(run),
        "state": jsonable(run.state),
    }


def last_line(run: LiveRun) -> str:
    """Give the last line of the engine's log; "" when there is none."""
    return (run.folder.tail(1) or [""])[0]


def resources(run: LiveRun) -> dict[str, int | None]:
    """Say how long a run has been there (seconds), and what it and its host have (bytes); None: not known.

    ``memory_bytes`` is the engine's resident memory, and ``cache_bytes`` its tensor cache, on the disk of
    ``disk_free_bytes``.
    """
    found: dict[str, int | None] = dict.fromkeys(
        ("age_s", "memory_bytes", "memory_available_bytes", "cache_bytes", "disk_free_bytes")
    )
    with suppress(ValueError):
        found["age_s"] = int((datetime.now(UTC) - datetime.fromisoformat(run.state.since)).total_seconds())
    if not run.live:
        return found
    with suppress(HostError):
        seen = find_runtime(run.state.runtime).processes(run.state)
        found["memory_bytes"] = machine.resident_bytes(process.pid for process in seen)
        found["memory_available_bytes"] = machine.memory_available()
    with suppress(HostError):
        folder = Path(read_plan(run.folder).launch.cache_dir)
        found["cache_bytes"], found["disk_free_bytes"] = disk.tree_bytes(folder), disk.free_bytes(folder)
    return found
