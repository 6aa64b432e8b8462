"""The manifest: which files a complete cache has."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.marker import write_beside
from ttstack.cache.strict import parse_object, read_bytes, shaped
from ttstack.cache.types import MANIFEST, SCHEMA, FileEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LIMIT = 256 << 20  # bytes; 20,000 files take 3 MB
LISTING: dict[str, type] = {"schema": int, "files": list}

_OURS = (".ttx-", "..ttx-")  # MARKER and its like; while one is written, its temporary file
_ROW = [str, int, int]
_NOWHERE = frozenset({"", ".", ".."})


def is_ours(name: str) -> bool:
    """Whether a file at the top of a cache is ours and none of its content."""
    return name.startswith(_OURS)


def scan(folder: Path) -> tuple[FileEntry, ...]:
    """List a cache's regular files, sorted by path, without ours. Links are not followed. Raises CacheError."""
    return tuple(
        FileEntry(path, seen.st_size, seen.st_mtime_ns)
        for path, seen in sorted(walk(folder))
        if stat.S_ISREG(seen.st_mode)
    )


def walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Give each entry below a cache that is not ours and no folder: its path from there, and its lstat.

    Raises CacheError when any part cannot be listed: then it is not known what is there.
    """
    pending = [""]
    while pending:
        under = pending.pop()
        try:
            with os.scandir(folder / under) as entries:
                for entry in entries:
                    path = f"{under}{entry.name}"
                    if not under and is_ours(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{path}/")
                    else:
                        yield path, entry.stat(follow_symlinks=False)
        except OSError as error:
            raise CacheError(f"cannot list {folder / under}: {error.strerror}") from error


def write_manifest(folder: Path, files: Iterable[FileEntry]) -> None:
    """Write down a cache's files. Raises CacheError."""
    rows = ",\n".join(json.dumps([file.path, file.size, file.mtime_ns]) for file in files)
    data = f'{{"schema": {SCHEMA}, "files": [\n{rows}\n]}}\n'.encode()
    parse_manifest(data, folder / MANIFEST)
    write_beside(folder / MANIFEST, data)


def read_manifest(folder: Path) -> tuple[FileEntry, ...] | None:
    """Read a cache's manifest; None when it has none. Raises CacheError when it cannot be believed."""
    found = read_bytes(folder, MANIFEST, LIMIT)
    return None if found is None else parse_manifest(found.data, folder / MANIFEST)


def parse_manifest(data: bytes, where: Path) -> tuple[FileEntry, ...]:
    """Understand a manifest's bytes. Raises CacheError."""
    rows = shaped(parse_object(data, where), LISTING, where)["files"]
    files = tuple(_entry(row, where) for row in rows)
    if len({file.path for file in files}) != len(files):
        raise CacheError(f"{where} names a file twice")
    return files


def _entry(row: object, where: Path) -> FileEntry:
    # No pattern here: there are tens of thousands of rows, and one takes five times as long.
    if type(row) is list and [type(part) for part in row] == _ROW and row[1] >= 0 and inside(row[0]):
        return FileEntry(*row)
    raise CacheError(f"{where}: {row!r} is no file of a cache")


def inside(path: str) -> bool:
    """Whether a path is relative, and stays below where it begins."""
    return "\0" not in path and _NOWHERE.isdisjoint(path.split("/"))
