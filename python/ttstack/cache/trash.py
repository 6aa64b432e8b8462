"""How a directory goes: by one rename into the trash, where it is nobody's any more, and then file by file.

So a directory that is half deleted is never taken for a cache, and whoever is interrupted leaves nothing but trash,
which the next one removes. What counts as freed is what the disk gives back: a file whose last link goes.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.tree import root_of
from ttstack.cache.types import TRASH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = 512  # bytes; the unit of st_blocks (stat(2))
_DEEPEST = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Weight:
    """What files take. ``bytes``: their lengths; ``freed``: what the disk gives back when they go."""

    files: int = 0
    bytes: int = 0
    freed: int = 0


class Scales:
    """Weigh folders that would go one after the other: a file is freed by the one that has its last link."""

    def __init__(self) -> None:
        self._links: dict[tuple[int, int], int] = {}

    def weigh(self, folder: Path) -> Weight:
        """Weigh a folder without touching it. What goes away meanwhile is left out. Raises CacheError."""
        weight = Weight()
        try:
            for seen in _walk(str(folder)):
                self._add(seen, weight)
        except OSError as error:
            raise CacheError(f"cannot look into {folder}: {error.strerror}") from error
        return weight

    def _add(self, seen: os.stat_result, weight: Weight) -> None:
        if stat.S_ISDIR(seen.st_mode):
            weight.freed += seen.st_blocks * _BLOCK
            return
        weight.files += 1
        weight.bytes += seen.st_size
        gone = 1
        if seen.st_nlink > 1:
            name = (seen.st_dev, seen.st_ino)
            gone = self._links[name] = self._links.get(name, 0) + 1
        if gone == seen.st_nlink:
            weight.freed += seen.st_blocks * _BLOCK


def _walk(folder: str) -> Iterator[os.stat_result]:
    """Look at a folder and all that is in it, by ``lstat``. Raises OSError for a folder that may not be listed."""
    folders = [folder]
    yield os.lstat(folder)
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        # Of an entry the system tells no links: a stat of its own.
                        yield entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
        except FileNotFoundError:
            continue


def trash_of(root: Path) -> Path:
    """Say where the trash of a root is; it need not be there. Raises CacheError for one that is not ours.

    Whatever lies in it is removed, so it must be a folder of the root itself: a link could lead anywhere.
    """
    trash = root / TRASH
    try:
        seen, above = trash.lstat(), root.stat()
    except FileNotFoundError:
        return trash
    except OSError as error:
        raise CacheError(f"cannot look at {trash}: {error.strerror}") from error
    if not stat.S_ISDIR(seen.st_mode) or seen.st_dev != above.st_dev:
        raise CacheError(
            f"{trash} is a link, no folder or on another disk, so ttx did not make it",
            hint="find out who put it there, then remove it",
        )
    return trash


def to_trash(folder: Path) -> Path:
    """Rename a directory of ours into its root's trash; return its place there. Under the registry's lock.

    Raises CacheError; then the directory is where it was.
    """
    root = root_of(folder)
    trash = trash_of(root)
    place = trash / f"{folder.name}.{secrets.token_hex(8)}"
    try:
        with suppress(FileExistsError):
            trash.mkdir()
            trash.chmod(stat.S_IMODE(root.stat().st_mode) & 0o1777)  # whoever may remove caches may do it by the trash
        os.rename(folder, place)  # noqa: PTH104 - never onto anything: the name is random
    except OSError as error:
        raise CacheError(f"cannot move {folder} to the trash: {error.strerror}") from error
    return place


def remove(place: Path) -> Weight:
    """Remove what lies in the trash, and say what it took. Others may remove it at the same time.

    Follows no link and enters no other file system. Raises CacheError; what is left can be removed again.
    """
    if place.parent.name != TRASH:
        raise CacheError(f"{place} does not lie in the trash")
    weight = Weight()
    try:
        seen = place.lstat()
        if stat.S_ISDIR(seen.st_mode):
            with _opened(str(place), None) as handle:
                _clear(handle, seen.st_dev, weight, 0)
            with suppress(FileNotFoundError):
                place.rmdir()
                weight.freed += seen.st_blocks * _BLOCK
        else:
            _unlink(str(place), seen, None, weight)
    except FileNotFoundError:
        return weight
    except OSError as error:
        raise CacheError(f"cannot remove {place}: {error.strerror}", hint="run ttx cache gc again") from error
    return weight


def discard(folder: Path) -> Weight:
    """Rename a directory of ours into the trash and remove it. Raises CacheError."""
    return remove(to_trash(folder))


@contextmanager
def _opened(name: str, within: int | None) -> Iterator[int]:
    handle = os.open(name, _FOLDER, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def _clear(handle: int, device: int, weight: Weight, depth: int) -> None:
    """Remove all that is in an open folder."""
    if depth > _DEEPEST:
        raise CacheError(f"folders lie more than {_DEEPEST} deep in it, which no cache has")
    for name in _names(handle):
        with suppress(FileNotFoundError):
            seen = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if not stat.S_ISDIR(seen.st_mode):
                _unlink(name, seen, handle, weight)
                continue
            if seen.st_dev != device:
                raise CacheError(f"another file system is mounted on {name} in it", hint="unmount it first")
            with _opened(name, handle) as inner:
                _clear(inner, device, weight, depth + 1)
            os.rmdir(name, dir_fd=handle)
            weight.freed += seen.st_blocks * _BLOCK


def _names(handle: int) -> list[str]:
    mode = os.fstat(handle).st_mode
    if not mode & stat.S_IWUSR:
        with suppress(PermissionError):
            os.fchmod(handle, stat.S_IMODE(mode) | stat.S_IRWXU)  # a read-only folder keeps its files
    return os.listdir(handle)


def _unlink(name: str, seen: os.stat_result, within: int | None, weight: Weight) -> None:
    os.unlink(name, dir_fd=within)
    weight.files += 1
    weight.bytes += seen.st_size
    if seen.st_nlink == 1:
        weight.freed += seen.st_blocks * _BLOCK
