"""What is mounted where, in this mount namespace and in those of other processes (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.process import PROC, command, pids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_FIELDS = 6  # before the optional ones


@dataclass(frozen=True, slots=True)
class MountPoint:
    """One line of mountinfo: the folder ``root`` of the file system ``device`` is seen at ``point``."""

    device: str  # major:minor
    root: str  # from the file system's own top
    point: str  # in the mount namespace of whom was asked


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A mount in another mount namespace, and one of the processes that see it."""

    mount: MountPoint
    pid: int
    command: str


def mount_points(proc: Path = PROC, pid: int | str = "self") -> tuple[MountPoint, ...]:
    """List the mounts that a process sees, later ones on top. Raises HostError."""
    path = proc / str(pid) / "mountinfo"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error
    return tuple(_parse(data))


def elsewhere(proc: Path = PROC) -> Iterator[Elsewhere]:
    """Give the mounts of all other mount namespaces that this user may look into, each namespace once.

    Only root sees those of other users. Raises HostError when there is no list of processes.
    """
    known = {_namespace(proc, "self")}
    for pid in pids(proc):
        namespace = _namespace(proc, pid)
        if namespace is None or namespace in known:
            continue
        try:
            found = mount_points(proc, pid)
        except HostError:
            continue  # it ended, or is another user's
        known.add(namespace)
        text = command(pid, proc)
        yield from (Elsewhere(mount, pid, text) for mount in found)


def place_of(path: str, mounts: Sequence[MountPoint]) -> tuple[str, str] | None:
    """Say where a path without links lies: the file system's device, and the path from its own top.

    Two paths that lead to one folder by different mounts have one such place. None when no mount holds it.
    """
    best: MountPoint | None = None
    for mount in mounts:
        # Of two mounts at one point the later one lies on top.
        if is_within(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    if best is None:
        return None
    below = path[len(best.point.rstrip("/")) :].strip("/")
    return best.device, f"{best.root.rstrip('/')}/{below}".rstrip("/") or "/"


def is_within(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder's or lies below it."""
    return folder in {"/", path} or path.startswith(f"{folder}/")


def _parse(data: bytes) -> Iterator[MountPoint]:
    for line in data.splitlines():
        words = line.split(b" ")
        if len(words) >= _FIELDS:
            device, root, point = words[2:5]
            yield MountPoint(device.decode("ascii", "replace"), _text(root), _text(point))


def _text(word: bytes) -> str:
    """Undo the octal escapes of blanks and backslashes."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8) & 0xFF]), word))


def _namespace(proc: Path, pid: int | str) -> int | None:
    try:
        return os.stat(f"{proc}/{pid}/ns/mnt").st_ino  # noqa: PTH116 - a link whose target has no path
    except OSError:
        return None
