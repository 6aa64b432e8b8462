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
from ttstack.cache.types import Marker
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory

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
    make_folder(folder, owner)
    marker = read_marker(folder)
    if marker is None and is_empty(folder):
        inputs = {"arm": builder.arm}
        made = now()
        write_marker(folder, Marker(folder.name, inputs, "complete", builder, made, kind="jit", completed=made))
    elif marker is None:
        return
    touch_used(folder)
