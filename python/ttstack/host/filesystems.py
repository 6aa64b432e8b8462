"""Which file system a folder is on, and what room it has.

Neither ``st_dev`` nor statvfs(3)'s ``f_fsid`` says which folders share their room. Both are equal over the bind mounts
of an ext4 or XFS; but each subvolume of a btrfs and each dataset of a ZFS pool has its own of both, though they eat
from one disk, and so has an overlay beside the file system that its upper folder is on. So the mount is asked, as the
kernel lists it (proc_pid_mountinfo(5)): by the number of the mount that an open folder is on, not by its path.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.process import PROC

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOKUP = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY
_DEPTH = 8  # overlays on overlays


@dataclass(frozen=True, slots=True)
class Filesystem:
    """A file system as seen from one folder: its quota may be smaller than the disk."""

    id: str  # equal for folders that share their room
    kind: str  # ext4, xfs, ...; "" when the kernel does not tell
    mount: str  # where it is mounted, for people
    free: int  # bytes that a user may still write: f_bavail, without what is kept for root
    files_free: int | None  # files that a user may still make: f_favail; None where the file system sets no limit
    read_only: bool


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo."""

    id: int
    device: str  # MAJOR:MINOR
    point: str
    kind: str
    source: str
    options: str  # of the file system, not of this mount


def filesystem_of(path: Path, proc: Path = PROC) -> Filesystem:
    """Find the file system of a folder, or of the first parent that is there. Raises HostError."""
    place = first_there(path)
    try:
        handle = os.open(place, _LOOKUP)
        try:
            room, device = os.fstatvfs(handle), os.fstat(handle).st_dev
            mount = _mount_of(handle, proc)
        finally:
            os.close(handle)
    except OSError as error:
        raise HostError(f"cannot learn which file system {place} is on: {error.strerror}") from error
    number = f"{os.major(device)}:{os.minor(device)}"
    return Filesystem(
        id=_identity(mount, number, proc, _DEPTH) if mount else number,
        kind=mount.kind if mount else "",
        mount=mount.point if mount else str(place),
        free=room.f_bavail * room.f_frsize,
        files_free=room.f_favail if room.f_files else None,  # btrfs makes inodes as it goes, and tells 0 of 0
        read_only=bool(room.f_flag & os.ST_RDONLY),
    )


@dataclass(frozen=True, slots=True)
class Written:
    """What has been written below a folder."""

    bytes: int  # that have their place on the disk, or are promised one: a hole counts nothing
    files: int  # folders count, too: each takes an inode


def written_below(folder: Path, leave_out: Callable[[str], bool] = lambda _: False) -> Written:
    """Add up a folder's files as far as they can be seen; nothing when it is not there. Links are not followed.

    The smaller of length and blocks counts: a file may be given its length before its content. ``leave_out``: names at
    the folder's top that do not count.
    """
    total = files = 0
    pending = [str(folder)]
    while pending:
        place = pending.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if place == str(folder) and leave_out(entry.name):
                        continue
                    with suppress(OSError):  # it is gone
                        seen = entry.stat(follow_symlinks=False)
                        files += 1
                        if stat.S_ISDIR(seen.st_mode):
                            pending.append(entry.path)
                        elif stat.S_ISREG(seen.st_mode):
                            total += min(seen.st_size, seen.st_blocks * 512)
        except OSError:
            continue
    return Written(total, files)


def first_there(path: Path) -> Path:
    """Give the folder, or the first parent that is there: what is made below it lies on the same file system.

    Links in the path are followed, as they will be when the folder is made. Raises HostError.
    """
    place = Path(os.path.realpath(path))
    for folder in (place, *place.parents):
        try:
            if folder.is_dir():
                return folder
        except OSError as error:
            raise HostError(f"cannot look at {folder}: {error.strerror}") from error
    raise HostError(f"there is no folder above {path}")


def mounts(proc: Path = PROC) -> tuple[Mount, ...]:
    """List the mounts that this process sees, in the order of mounting. Raises OSError."""
    return tuple(filter(None, map(_parse, (proc / "self" / "mountinfo").read_bytes().splitlines())))


def _parse(line: bytes) -> Mount | None:
    """Read ``ID PARENT DEVICE ROOT POINT OPTIONS [TAG...] - KIND SOURCE OPTIONS``; None for anything else."""
    head, dash, tail = line.partition(b" - ")
    front, back = head.split(b" "), tail.split(b" ")
    if not dash or len(front) < 6 or len(back) < 3 or not front[0].isdigit():  # noqa: PLR2004 - the fields named above
        return None
    return Mount(int(front[0]), *map(_text, (front[2], front[4], back[0], back[1], back[2])))


def _text(word: bytes) -> str:
    """Undo the octal escapes."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8) & 255]), word))


def _mount_of(handle: int, proc: Path) -> Mount | None:
    """Find the mount that an open folder is on; None where it is not listed (a folder outside a chroot)."""
    for line in (proc / "self" / "fdinfo" / str(handle)).read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "mnt_id":
            return next((mount for mount in mounts(proc) if mount.id == int(value)), None)
    return None


def _identity(mount: Mount, device: str, proc: Path, depth: int) -> str:
    """Name what the room is taken from."""
    if mount.kind in {"btrfs", "bcachefs"}:
        return f"{mount.kind} {mount.source}"
    if mount.kind == "zfs":
        return f"zfs {mount.source.partition('/')[0]}"
    if mount.kind == "overlay" and depth:
        return _upper(mount, proc, depth) or device
    return device


def _upper(mount: Mount, proc: Path, depth: int) -> str:
    """Name the file system of an overlay's upper folder; "" when that cannot be seen from here (in a container)."""
    found = re.search(r"(?:^|,)upperdir=((?:[^,\\]|\\.)*)", mount.options)
    folder = Path(re.sub(r"\\(.)", r"\1", found[1])) if found else Path()
    if not folder.is_absolute():
        return ""
    try:
        handle = os.open(folder, _LOOKUP)
    except OSError:
        return ""
    try:
        seen, told = os.fstatvfs(handle), os.statvfs(mount.point)
        if (seen.f_blocks, seen.f_files) != (told.f_blocks, told.f_files):
            return ""  # a folder of the same name, in another namespace of mounts
        below, number = _mount_of(handle, proc), os.fstat(handle).st_dev
        device = f"{os.major(number)}:{os.minor(number)}"
        return _identity(below, device, proc, depth - 1) if below else device
    except OSError:
        return ""
    finally:
        os.close(handle)
