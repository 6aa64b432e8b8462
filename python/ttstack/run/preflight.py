"""What must hold before an engine is started: refused here, a boot that cannot work costs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host import ports
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory
from ttstack.host.process import command, environ
from ttstack.run.errors import RunRefusedError
from ttstack.run.runtime import RUN_VARIABLE

if TYPE_CHECKING:
    from ttstack.arm.types import Model
    from ttstack.render.launch import Launch

_GB = 1_000_000_000
_MARGIN = 1.1  # room beside the cache itself: other writers, and what the estimate is off by


def check_model(model: Model) -> None:
    """Refuse a checkpoint that is not there."""
    if model.path and not Path(model.path).is_dir():
        raise RunRefusedError(
            f"the checkpoint of model {model.name} is not at {model.path}",
            hint="put it there, or correct `path` in models.toml",
            reason="model_missing",
        )


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


def cache_is_warm(launch: Launch) -> bool:
    """Whether the tensor cache of this launch holds anything."""
    try:
        return next(Path(launch.cache_dir).iterdir(), None) is not None
    except OSError:
        return False


def check_cache(launch: Launch, model: Model) -> None:
    """Refuse a cache folder that cannot be written, and a cold boot whose cache would not fit.

    A read-only cache stops an engine late (tt-metal#46878). Expected bytes are the catalogue's ``cache_gb``.
    """
    folder = Path(launch.cache_dir)
    there = folder if folder.exists() else make_directory(folder.parent)
    if not os.access(there, os.W_OK | os.X_OK):
        raise RunRefusedError(
            f"the tensor cache cannot be written: {there}",
            hint="mend its permissions, or set TTX_CACHE to another folder",
            reason="cache_unwritable",
        )
    if cache_is_warm(launch):
        return
    needed = int(model.cache_gb * _GB * _MARGIN)
    seen = os.statvfs(there)
    free = seen.f_bavail * seen.f_frsize
    if free < needed:
        raise RunRefusedError(
            f"the tensor cache of {model.name} takes {needed / _GB:.1f} GB, and {there} has {free / _GB:.1f} GB free",
            hint="free space there, or set TTX_CACHE to a larger disk",
            reason="no_space",
        )
