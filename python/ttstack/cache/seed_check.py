"""Whether a build left the files alone that its cache began with.

An engine that writes beside and renames gives a file a new inode, and harms nobody. One that writes into a file which
is there changes it for every cache that has a name of it: none of them is what its manifest says any more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import read_manifest
from ttstack.cache.seed_record import Record, Row, read_record, sample
from ttstack.cache.survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SeedCheck:
    """What became of the seeds. All is well when ``changed`` is empty.

    ``changed``: files that were written in place though other caches have them. ``damaged``: keys of all caches under
    the root that have one of these, the new one among them: each of them is broken. ``replaced``: files that the engine
    made anew in its own cache, which harms nobody; it does so for a file that it could not load (tt-metal#25693).
    """

    source: str = ""  # "" when the cache began with nothing
    changed: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One sentence about what is wrong; "" when nothing is."""
        if not self.changed:
            return ""
        more = f" and {len(self.changed) - 1} more" if len(self.changed) > 1 else ""
        return f"the engine wrote into {self.changed[0]}{more}, of cache {self.source}, in place"


def check_seeds(folder: Path) -> SeedCheck:
    """Look at the seeds of a cache after its build. Raises CacheError when that cannot be done completely."""
    record = read_record(folder)
    if record is None:
        return SeedCheck()
    changed: list[Row] = []
    replaced: list[str] = []
    for row in record.rows:
        verdict = _verdict(folder, row, record)
        if verdict == "changed":
            changed.append(row)
        elif verdict == "replaced":
            replaced.append(row.path)
    damaged = _holders(folder, changed) if changed else ()
    return SeedCheck(record.source, tuple(row.path for row in changed), damaged, tuple(replaced))


def _verdict(folder: Path, row: Row, record: Record) -> str:
    """Say what became of one file: "", "replaced" (gone counts) or "changed"."""
    here = _seen(folder / row.path)
    if row.method != "hardlink":
        # It is this cache's own file, whoever wrote it.
        as_put = (row.inode, row.size, row.mtime_ns)
        return "" if here is not None and (here.st_ino, here.st_size, here.st_mtime_ns) == as_put else "replaced"
    # The new name may be another file by now, and the old one still tells what was done to it before.
    there = _seen(folder.parent / record.source / row.path)
    for seen, base in ((here, folder), (there, folder.parent / record.source)):
        if seen is not None and seen.st_ino == row.inode:
            if (seen.st_size, seen.st_mtime_ns) != (row.size, row.mtime_ns):
                return "changed"
            if row.path in record.samples and _content(base / row.path) != record.samples[row.path]:
                return "changed"
    return "" if here is not None and here.st_ino == row.inode else "replaced"


def _seen(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CacheError(f"cannot look at {path}: {error.strerror}") from error


def _content(path: Path) -> str:
    try:
        handle = os.open(path.parent, _FOLDER)
        try:
            return sample(handle, path.name)
        finally:
            os.close(handle)
    except OSError as error:
        raise CacheError(f"cannot read {path}: {error.strerror}") from error


def _holders(folder: Path, changed: Iterable[Row]) -> tuple[str, ...]:
    """Name the caches under the root that have one of these inodes by a name in their manifest, and the new one."""
    device, inodes = folder.stat().st_dev, {row.inode for row in changed}
    found = {folder.name}
    for directory in survey(folder.parent):
        if directory.standing != "complete" or directory.path == folder:
            continue
        with suppress(CacheError):  # one whose manifest cannot be read is refused without us
            for entry in read_manifest(directory.path) or ():
                seen = _seen(directory.path / entry.path)
                if seen is not None and seen.st_dev == device and seen.st_ino in inodes:
                    found.add(directory.key)
                    break
    return tuple(sorted(found))
