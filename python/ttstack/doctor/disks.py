"""Room on the disks that engines fill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.doctor.codes import finding
from ttstack.host.filesystems import filesystem_of
from ttstack.run.watch import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ttstack.doctor.types import Finding
    from ttstack.host.filesystems import Filesystem

_GB = 1_000_000_000
# Choices, not measurements. Engines are stopped below DEFAULT_LIMITS.disk_floor (run.watch).
STATE_FLOOR = _GB // 2  # bytes: logs and records
LOW = 20 * _GB  # bytes
FILES_FLOOR = 1000


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """A folder and the file system that it is on, or would be made on."""

    role: str  # "state", "caches", "docker", ...
    folder: str
    filesystem: Filesystem


def look(role: str, folder: Path) -> DiskSeen:
    """Look at the file system of a folder that need not be there yet. Raises HostError."""
    return DiskSeen(role, str(folder), filesystem_of(folder))


def judge(seen: DiskSeen) -> Iterator[Finding]:
    """Say what to make of it."""
    there, floor = seen.filesystem, STATE_FLOOR if seen.role == "state" else DEFAULT_LIMITS.disk_floor
    name = f"{seen.role} {seen.folder}"
    where = f"on {there.mount}" + (f" ({there.kind})" if there.kind else "")
    free = f"{there.free / _GB:.1f} GB free {where}"
    faults = []
    if there.read_only:
        faults.append(finding("disks.read-only", f"{name}: mounted read-only {where}", subject=seen.folder))
    if there.files_free is not None and there.files_free < FILES_FLOOR:
        text = f"{name}: {there.files_free} more files can be made {where}"
        faults.append(finding("disks.inodes", text, subject=seen.folder))
    if there.free < floor:
        text = f"{name}: {free}, under the floor of {floor / _GB:g} GB"
        faults.append(finding("disks.full", text, subject=seen.folder))
    elif there.free < LOW and seen.role != "state":
        faults.append(finding("disks.low", f"{name}: {free}", subject=seen.folder))
    yield from faults or [finding("disks.fine", f"{name}: {free}", subject=seen.folder)]
