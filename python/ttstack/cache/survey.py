"""What the directories under a root are, as their markers, their locks and their builders say."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cache import lock
from ttstack.cache.errors import CacheError, NoSuchCacheError
from ttstack.cache.manifest import walk
from ttstack.cache.marker import is_key, read_marker, read_used
from ttstack.cache.tree import JIT, folder_at, listed, root_of
from ttstack.cache.types import LOCKS, NEW, TRASH, Builder, Directory, Marker
from ttstack.host.errors import HostError
from ttstack.host.process import alive, boot_id

if TYPE_CHECKING:
    from collections.abc import Iterator

_PID_NAMESPACE = Path("/proc/self/ns/pid")


def survey(root: Path) -> tuple[Directory, ...]:
    """Look at every directory under a root, sorted by path: caches, kernel caches, trash, and what is not ours.

    Needs no lock and writes nothing; () for a root that is not there. Raises CacheError when it cannot be listed.
    """
    found = []
    for folder, keyed in _every(root):
        directory = _marked(folder, root) if keyed else None
        if directory is None or directory.standing == "unmarked":
            try:
                directory = standing_of(folder, root)
            except NoSuchCacheError:
                continue  # renamed or removed since it was listed
        found.append(directory)
    return tuple(found)


def _every(root: Path) -> Iterator[tuple[Path, bool]]:
    """Give each, with whether it was seen to be a folder whose name is a key: so no second look at it is needed."""
    for name, link in listed(root):
        if name in {TRASH, JIT} and not link:
            yield from ((root / name / inner, False) for inner, _ in listed(root / name))
        elif name != LOCKS:
            yield root / name, is_key(name) and not link


def standing_of(folder: Path, root: Path | None = None) -> Directory:
    """Say what one directory is. ``root`` need not be given. Raises NoSuchCacheError when there is none."""
    try:
        seen = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise NoSuchCacheError(f"there is no {folder}", hint="what there is: ttx cache ls") from None
    except OSError as error:
        return Directory(folder, "unreadable", None, None, f"cannot look at it: {error.strerror}")
    if folder.parent.name == TRASH:
        return Directory(folder, "trash", None, None)
    if folder.name == NEW and folder == (root or root_of(folder)) / NEW:
        return _in_the_making(folder)
    if not stat.S_ISDIR(seen.st_mode):
        what = "a link" if stat.S_ISLNK(seen.st_mode) else "no directory"
        return Directory(folder, "not ours", None, None, f"it is {what}")
    if is_key(folder.name) or (folder.parent.name == JIT and folder_at(f"{JIT}/{folder.name}")):
        return _marked(folder, root_of(folder) if root is None else root)
    return Directory(folder, "not ours", None, None)


def is_new(path: Path) -> bool:
    """Whether it is a directory in the making, or what is left of one: a folder that holds no files but ours.

    Raises CacheError.
    """
    if path.name != NEW or path.is_symlink() or not path.is_dir():
        return False
    return next(walk(path), None) is None


def _in_the_making(folder: Path) -> Directory:
    """Say what NEW is. Nothing of it was ever used: it is worth no more than trash."""
    try:
        ours = is_new(folder)
    except CacheError as error:
        return Directory(folder, "unreadable", None, None, error.message)
    if ours:
        return Directory(
            folder, "trash", None, None, "a start makes a directory of it just now, or was killed doing so"
        )
    return Directory(folder, "not ours", None, None)


def _marked(folder: Path, root: Path) -> Directory:
    try:
        marker = read_marker(folder)
        if marker is None:
            return Directory(folder, "unmarked" if is_key(folder.name) else "not ours", None, None)
        used = read_used(folder)
        if marker.state != "building":
            return Directory(folder, marker.state, marker, used, marker.reason)
        lives = _lives(root, marker)
        if not lives and read_marker(folder) != marker:
            return _marked(folder, root)  # it was finished between the two looks, and its lock let go
    except CacheError as error:
        return Directory(folder, "unreadable", None, None, error.message)
    if lives:
        return Directory(folder, "building", marker, used, lives)
    return Directory(folder, "abandoned", marker, used, f"run {marker.builder.run} did not end it, and is gone")


def _lives(root: Path, marker: Marker) -> str:
    """Say by what it is seen that a build goes on; "" when it does not."""
    try:
        if lock.state(root, marker.key) != "free":
            return "its lock is held"
    except CacheError as error:
        return f"it cannot be told whether it goes on: {error.message}"
    return "its builder lives" if builder_lives(marker.builder) else ""


def builder_lives(builder: Builder) -> bool:
    """Whether the very process that builds is seen to live. One of another pid namespace is not seen from here."""
    try:
        here = os.stat(_PID_NAMESPACE).st_ino  # noqa: PTH116 - a link whose target has no path
        return (builder.boot, builder.pid_namespace) == (boot_id(), here) and alive(builder.process)
    except (HostError, OSError):
        return True  # it could not be looked for
