"""What a cache began with: one file of ours in it, for the look at its seeds when it is built."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, cast, get_args

from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import inside
from ttstack.cache.marker import is_key
from ttstack.cache.strict import parse_object, read_bytes, shaped
from ttstack.cache.types import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Method = Literal["reflink", "hardlink", "copy"]
"""How a file is put into another cache."""

SEEDS = ".ttx-seeds.json"
LIMIT = 256 << 20  # bytes, as a manifest

SHAPE: dict[str, type] = {"schema": int, "source": str, "samples": dict, "files": list}

SAMPLES = 64
"""Of so many files some content is kept, as a writer that puts times back leaves size and time as they were."""

_PIECE = 65536  # bytes, of the beginning, the middle and the end
_SMALL = 3 * _PIECE  # read whole
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_METHODS = frozenset(get_args(Method))


class Row(NamedTuple):
    """One file that was put. ``inode`` is the one it has in the cache that was seeded."""

    path: str
    method: Method
    inode: int
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Record:
    """All that was put. ``samples``: digest of some content, by path."""

    source: str
    rows: tuple[Row, ...]
    samples: Mapping[str, str]


def sampled(files: int) -> int:
    """Say of every how manieth of so many files content is kept."""
    return max(1, -(-files // SAMPLES))


def sample(folder: int, name: str) -> str:
    """Digest the beginning, the middle and the end of a file in an open folder. Raises OSError."""
    handle = os.open(name, _READ, dir_fd=folder)
    try:
        size = os.fstat(handle).st_size
        digest = hashlib.sha256()
        pieces = ((size // 2 - _PIECE // 2, _PIECE), (size - _PIECE, _PIECE)) if size > _SMALL else ()
        for at, length in ((0, _SMALL if not pieces else _PIECE), *pieces):
            digest.update(os.pread(handle, min(size, length), at))
        return digest.hexdigest()
    finally:
        os.close(handle)


def write_record(folder: Path, source: str, rows: Sequence[Row], samples: Mapping[str, str]) -> None:
    """Write down what was put into a cache that has no such record. Raises OSError.

    It is not waited for until it is on the disk, which would take all those files with it: a build does not outlive
    its host.
    """
    table = {"schema": SCHEMA, "source": source, "samples": dict(samples), "files": rows}
    handle = os.open(folder / SEEDS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(f"{json.dumps(table)}\n".encode())


def read_record(folder: Path) -> Record | None:
    """Read what a cache began with; None when it began with nothing. Raises CacheError when that cannot be believed."""
    found = read_bytes(folder, SEEDS, LIMIT)
    if found is None:
        return None
    where = folder / SEEDS
    table = shaped(parse_object(found.data, where), SHAPE, where)
    source, samples = table["source"], table["samples"]
    if not is_key(source) or not all(isinstance(value, str) for value in samples.values()):
        raise CacheError(f"{where} does not say from where and what")
    return Record(source, tuple(_row(row, where) for row in table["files"]), samples)


def _row(row: object, where: Path) -> Row:
    match row:
        case [str(path), str(method), int(inode), int(size), int(mtime)] if inside(path) and method in _METHODS:
            return Row(path, cast("Method", method), inode, size, mtime)
    raise CacheError(f"{where}: {row!r} is no file that was put")
