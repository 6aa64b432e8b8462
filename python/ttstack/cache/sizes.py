"""What directories take on the disk, when files of some are files of others, too."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BLOCK = 512  # bytes of st_blocks, whatever the file system's own are (stat(2))


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes on the disk. ``own`` would be free if the directory went; ``shared`` has further names elsewhere.

    What files share by reflink cannot be told, and counts for each. ``unread``: folders that could not be listed.
    """

    own: int
    shared: int
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of some directories, and of all together, with each file counted once."""

    each: dict[Path, Size]
    total: int


def measure(folders: Iterable[Path]) -> Sizes:
    """Add up what folders take. Writes nothing, follows no link."""
    each: dict[Path, Size] = {}
    seen: dict[tuple[int, int], int] = {}
    for folder in folders:
        links: dict[tuple[int, int], tuple[int, int, int]] = {}  # found here, there are, bytes
        unread = 0
        for stat in _walk(folder):
            if stat is None:
                unread += 1
                continue
            name = stat.st_dev, stat.st_ino
            found = links.get(name, (0, 0, 0))[0]
            links[name] = found + 1, stat.st_nlink, stat.st_blocks * _BLOCK
        own = sum(size for found, there, size in links.values() if found >= there)
        shared = sum(size for found, there, size in links.values() if found < there)
        each[folder] = Size(own, shared, unread)
        seen |= {name: size for name, (_, _, size) in links.items()}
    return Sizes(each, sum(seen.values()))


def _walk(folder: Path) -> Iterator[os.stat_result | None]:
    """Give the lstat of each file, and None for each folder that cannot be listed. Folders themselves do not count."""
    pending = [os.fspath(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # it went away
        except OSError:
            yield None
