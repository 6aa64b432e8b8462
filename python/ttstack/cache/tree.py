"""Where directories of caches are under a root, and which names they may have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.marker import is_key
from ttstack.cache.types import NEW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JIT = "jit"


def folder_at(path: str) -> bool:
    """Whether a path from the root is where a directory of ours may be: ``KEY`` or ``jit/NAME``."""
    first, slash, name = path.partition("/")
    if not slash:
        return is_key(first)
    return first == JIT and bool(name) and "/" not in name and "\0" not in name and not name.startswith(".")


def root_of(folder: Path) -> Path:
    """Say under which root a directory of ours lies."""
    beside = is_key(folder.name) or folder.name == NEW or folder.parent.name != JIT
    return folder.parent if beside else folder.parent.parent


def folders(root: Path) -> Iterator[tuple[str, Path]]:
    """Give each directory that may be ours, and is no link: its path from the root, its place. Raises CacheError."""
    for name in subfolders(root):
        if is_key(name):
            yield name, root / name
        elif name == JIT:
            for inner in subfolders(root / JIT):
                if folder_at(f"{JIT}/{inner}"):
                    yield f"{JIT}/{inner}", root / JIT / inner


def subfolders(folder: Path, *, links: bool = False) -> list[str]:
    """Name the folders in a folder, sorted; with ``links`` also links to some. [] when it is not there.

    Raises CacheError.
    """
    return [name for name, link in listed(folder) if links or not link]


def listed(folder: Path) -> list[tuple[str, bool]]:
    """Name the folders in a folder and the links to some, sorted, each with whether it is a link. Raises CacheError."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.is_symlink()) for entry in entries if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CacheError(f"cannot list {folder}: {error.strerror}") from error
