"""The folders of caches as files: made for the engine's user, synced, marked though the disk is full."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import walk
from ttstack.cache.marker import read_marker, touch_used, write_marker
from ttstack.cache.registry import locked
from ttstack.cache.survey import is_new
from ttstack.cache.trash import remove, to_trash
from ttstack.cache.tree import root_of
from ttstack.cache.types import NEW, Marker
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.cache.types import Builder, FileEntry

SPARE = ".ttx-spare"
"""Room that a build sets aside: on a disk that it filled the marker must still be able to say "broken"."""

_SPARE_BYTES = 16384  # a marker is about 1000 bytes; its folder and inode need blocks of their own
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_MODE = 0o755


def now() -> str:
    """UTC, ISO 8601, to the second."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def make_folder(folder: Path, owner: int | None) -> None:
    """Make a cache's folder unless it is there, for user ``owner``; None: for ourselves. Raises CacheError."""
    try:
        make_directory(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=_MODE)
        if owner is not None and os.geteuid() == 0 and folder.stat().st_uid != owner:
            os.chown(folder, owner, -1)
    except HostError as error:
        raise CacheError(error.message, hint=error.hint, reason="cache_unwritable") from error
    except OSError as error:
        raise CacheError(
            f"cannot make the folder {folder}: {error.strerror}",
            hint="mend its permissions, or set TTX_CACHE to another folder",
            reason="cache_unwritable",
        ) from error


def make_marked(folder: Path, marker: Marker, owner: int | None) -> None:
    """Make a directory whose marker is in it from the first moment. Under the registry's lock.

    One that is there already, empty, is marked in its place: somebody may have mounted it. Raises CacheError.
    """
    if os.path.lexists(folder):
        make_folder(folder, owner)
        _fill(folder, folder, marker)
        return
    new = root_of(folder) / NEW
    drop_new(new.parent)
    try:
        make_folder(new, owner)
        _fill(folder, new, marker)
        make_directory(folder.parent)
        new.rename(folder)
        sync_folder(folder.parent)
    except BaseException as error:
        with suppress(CacheError, OSError):
            remove(to_trash(new))
        if isinstance(error, HostError):
            raise CacheError(error.message, hint=error.hint, reason="cache_unwritable") from error
        if isinstance(error, OSError):
            raise CacheError(f"cannot make {folder}: {error.strerror}", reason="cache_unwritable") from error
        raise


def _fill(folder: Path, at: Path, marker: Marker) -> None:
    write_marker(folder, marker, at=at)
    touch_used(at)
    if marker.state == "building":
        put_spare(at)


def drop_new(root: Path) -> None:
    """Remove what a start left that was killed as it made a directory. Under the registry's lock. Raises CacheError."""
    new = root / NEW
    if not os.path.lexists(new):
        return
    if not is_new(new):
        raise CacheError(
            f"{new} is in the way: it is a link, no folder, or holds files that ttx did not put there",
            hint="find out who put it there, then move it away",
        )
    remove(to_trash(new))


def is_empty(folder: Path) -> bool:
    """Whether a folder holds no file, ours left out. Raises CacheError."""
    return next(walk(folder), None) is None


def put_spare(folder: Path) -> None:
    """Set room aside. Raises CacheError."""
    try:
        handle = os.open(folder / SPARE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(
                handle, os.urandom(_SPARE_BYTES)
            )  # random: some disks keep no zeros, and some squeeze what repeats
            os.fsync(handle)
        finally:
            os.close(handle)
    except FileExistsError:
        return
    except OSError as error:
        raise CacheError(f"cannot write {folder / SPARE}: {error.strerror}") from error


def drop_spare(folder: Path) -> None:
    """Give the room back."""
    with suppress(OSError):
        (folder / SPARE).unlink()


def write_in_need(folder: Path, marker: Marker) -> None:
    """Replace a marker, with the room that was set aside when there is no other. Raises CacheError."""
    try:
        write_marker(folder, marker)
    except CacheError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _NO_ROOM:
            raise
        drop_spare(folder)
        write_marker(folder, marker)


def sync_files(folder: Path, files: tuple[FileEntry, ...]) -> None:
    """Wait until files are on the disk: a cache that says complete must be so after a power cut, too.

    It also keeps the writing back of a build out of what is measured after it. Raises CacheError.
    """
    for entry in files:
        try:
            handle = os.open(folder / entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise CacheError(f"cannot sync {folder / entry.path}: {error.strerror}") from error


def mark_jit(folder: Path, builder: Builder, owner: int | None) -> None:
    """Make a kernel cache's folder, mark it as ours when it is new, and note that it is used.

    One that holds files and no marker of ours stays as it is. Raises CacheError.
    """
    if os.path.lexists(folder):
        make_folder(folder, owner)
    if read_marker(folder) is None and not _mark_new_jit(folder, builder, owner):
        return
    touch_used(folder)


def _mark_new_jit(folder: Path, builder: Builder, owner: int | None) -> bool:
    with locked(root_of(folder)):
        if read_marker(folder) is not None:
            return True  # by another start
        if folder.is_dir() and not is_empty(folder):
            return False
        made, inputs = now(), {"arm": builder.arm}
        marker = Marker(folder.name, inputs, "complete", builder, made, kind="jit", completed=made)
        make_marked(folder, marker, owner)
        return True
