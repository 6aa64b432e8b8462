"""What must hold before an engine is started: refused here, a boot that cannot work costs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host import ports
from ttstack.host.disk import free_bytes
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory
from ttstack.host.machine import memory_available
from ttstack.host.process import command, environ
from ttstack.run.errors import RunRefusedError
from ttstack.run.runtime import RUN_VARIABLE

if TYPE_CHECKING:
    from ttstack.arm.types import Asked, Model
    from ttstack.render.launch import Launch
    from ttstack.run.watch import Limits

_GB = 1_000_000_000


def check_model(model: Model) -> None:
    """Refuse a checkpoint that is not there."""
    if model.path and not Path(model.path).is_dir():
        raise RunRefusedError(
            f"the checkpoint of model {model.name} is not at {model.path}",
            hint="put it there, or correct `path` in models.toml",
            reason="model_missing",
        )


def check(asked: Asked, launch: Launch, limits: Limits) -> None:
    """Refuse what cannot work on this host now. Raises RunRefusedError and HostError."""
    check_port(asked.arm.engine.host, asked.arm.engine.port)
    check_memory(limits.memory_start)
    check_cache(launch)
    check_disk(Path(launch.cache_dir), limits.disk_floor)


def check_port(host: str, port: int) -> None:
    """Refuse a port that somebody has, naming who when that can be learned."""
    if not ports.busy(host, port):
        return
    who, way_out = "another process", "stop it"
    try:
        found = ports.owners(ports.listening_inodes(port))
    except HostError:
        found = ()  # then it stays "another process"
    if found:
        who = ", ".join(f"pid {pid} ({command(pid)})" for pid in found)
        ours = {run for pid in found if (run := (environ(pid) or {}).get(RUN_VARIABLE))}
        way_out = "; ".join(f"stop its run: ttx down {run}" for run in sorted(ours)) or way_out
    raise RunRefusedError(
        f"port {port} on {host} is in use by {who}",
        hint=f"{way_out}, or choose another `engine.port` for the arm",
        reason="port_busy",
    )


def check_cache(launch: Launch) -> None:
    """Refuse a cache folder that cannot be written: a read-only one stops an engine late (tt-metal#46878)."""
    folder = Path(launch.cache_dir)
    there = folder if folder.exists() else make_directory(folder.parent)
    if not os.access(there, os.W_OK | os.X_OK):
        raise RunRefusedError(
            f"the tensor cache cannot be written: {there}",
            hint="mend its permissions, or set TTX_CACHE to another folder",
            reason="cache_unwritable",
        )


def check_memory(floor: int) -> None:
    """Refuse a start with less than this much memory available, bytes; a host that does not tell has enough."""
    left = memory_available()
    if left is not None and left < floor:
        raise RunRefusedError(
            f"this host has {left / _GB:.1f} GB of memory available, and a start takes at least {floor / _GB:.1f} GB",
            hint="what has it, and whether a reboot is due: ttx doctor",
            reason="no_memory",
        )


def check_disk(folder: Path, floor: int) -> None:
    """Refuse a disk on which the supervisor would stop the engine at once."""
    free = free_bytes(folder)
    if free is not None and free < floor:
        raise RunRefusedError(
            f"{folder} has {free / _GB:.1f} GB free, and no engine is run with less than {floor / _GB:.1f} GB",
            hint="what could go: ttx cache gc --dry-run",
            reason="no_space",
        )
