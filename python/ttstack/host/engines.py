"""Whether anything of docker or podman runs here, as processes tell, and whether all processes can be seen at all.

An engine that cannot be asked may have containers. It has none when none of its processes is there: each container of
docker has a containerd-shim beside it, which outlives a daemon that was stopped, and each of podman has a conmon; and
the processes inside have the container's id in the names of their control groups. Names and groups of processes are
for everybody to read (proc_pid_comm(5), proc_pid_cgroup(5)).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.process import pids

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_NAMESPACE = "pid:[4026531836]"  # the host's own: PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h

# As in /proc/PID/comm, which holds 15 characters; wrapped programs (nixpkgs' makeWrapper) begin with a dot.
_NAMES = {
    "docker": re.compile(r"\.?(dockerd|containerd-shim|docker-containe)"),
    "podman": re.compile(r"\.?conmon"),
}
_GROUPS = {"docker": re.compile(r"docker[-/][0-9a-f]{64}"), "podman": re.compile(r"libpod-[0-9a-f]{64}")}


def on_path(program: str) -> bool:
    """Whether there is anything of that name, also what this user may not run: that is not the same as nothing."""
    return any(os.path.lexists(os.path.join(folder, program)) for folder in os.get_exec_path())  # noqa: PTH118


def hidden(there: Sequence[int], proc: Path) -> list[str]:
    """Say why /proc does not show all of the host's processes, if so."""
    try:
        namespace = str((proc / "self" / "ns" / "pid").readlink())
    except OSError:
        namespace = ""
    if namespace != _FIRST_NAMESPACE:
        return ["processes outside this pid namespace (tt-kmd 2.5.0 or newer lists them)"]
    return [] if 1 in there else [f"{proc} hides the processes of other users (hidepid, proc(5))"]


def living(engine: str, proc: Path) -> str | None:
    """Name a process of an engine or of one of its containers; "" when there is none, None when it cannot be told."""
    try:
        there = pids(proc)
        if hidden(there, proc):
            return None
        for pid in there:
            name, groups = _tell(proc, pid)
            if _NAMES[engine].match(name):
                return f"{name} (pid {pid})"
            if _GROUPS[engine].search(groups):
                return f"pid {pid} in a container of {engine}"
    except (HostError, OSError):
        return None
    return ""


def _tell(proc: Path, pid: int) -> tuple[str, str]:
    """Read a process's name and control groups; "" when it ended meanwhile. Raises OSError."""
    try:
        name = Path(f"{proc}/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        return name, Path(f"{proc}/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(f"{proc}/{pid}"):  # noqa: PTH110 - as in the paths above
            raise
        return "", ""
