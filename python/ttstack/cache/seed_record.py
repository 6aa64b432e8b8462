"""What a cache began with: one file of ours in it, for the look at its seeds when it is built."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import parse_manifest
from ttstack.cache.marker import is_key
from ttstack.cache.strict import parse_object, read_bytes, shaped
from ttstack.cache.types import MANIFEST, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ttstack.cache.types import FileEntry

Method = Literal["reflink", "hardlink", "copy"]
"""How a file is put into another cache."""

SEEDS = ".ttx-seeds.json"
LIMIT = 256 << 20  # bytes, as a manifest

SHAPE: dict[str, type] = {
    "schema": int,
    "source": str,
    "samples": dict,
    "method": str,
    "others": dict,
    "inodes": list,  # as the manifest's files follow one another
}

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


@dataclass(frozen=True, slots=True)
class Listing:
    """A manifest: what it says, and how it says it."""

    files: tuple[FileEntry, ...]
    data: bytes


def read_listing(source: Path) -> Listing | None:
    """Read a cache's manifest; None when it has none. Raises CacheError when it cannot be believed."""
    found = read_bytes(source, MANIFEST, LIMIT)
    return None if found is None else Listing(parse_manifest(found.data, source / MANIFEST), found.data)


def write_record(folder: Path, source: str, listing: Listing, rows: Sequence[Row], samples: Mapping[str, str]) -> None:
    """Write down what was put into a cache that has no such record: one line of our own, then the source's manifest.

    The manifest as it was read, since to write tens of thousands of rows anew takes as long as a tenth of the links.
    Nor is it waited for until it is on the disk, which would take all those files with it: a build does not outlive its
    host. Raises OSError.
    """
    methods = Counter(row.method for row in rows)
    usual = max(methods, key=lambda method: methods[method], default="copy")
    inodes = {row.path: row.inode for row in rows}
    table = {
        "schema": SCHEMA,
        "source": source,
        "samples": dict(samples),
        "method": usual,
        "others": {row.path: row.method for row in rows if row.method != usual},
        "inodes": [inodes[entry.path] for entry in listing.files],
    }
    handle = os.open(folder / SEEDS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.writelines((f"{json.dumps(table)}\n".encode(), listing.data))


def read_record(folder: Path) -> Record | None:
    """Read what a cache began with; None when it began with nothing. Raises CacheError when that cannot be believed."""
    found = read_bytes(folder, SEEDS, LIMIT)
    if found is None:
        return None
    where = folder / SEEDS
    head, _, manifest = found.data.partition(b"\n")
    table = shaped(parse_object(head, where), SHAPE, where)
    source, samples, others, inodes = (table[name] for name in ("source", "samples", "others", "inodes"))
    if not is_key(source) or not all(isinstance(value, str) for value in samples.values()):
        raise CacheError(f"{where} does not say from where and what")
    if not {table["method"], *others.values()} <= _METHODS or not all(type(inode) is int for inode in inodes):
        raise CacheError(f"{where} does not say how files were put")
    files = parse_manifest(manifest, where)
    if len(inodes) != len(files):
        raise CacheError(f"{where} does not tell of each file that was put, and of no other")
    rows = (
        Row(entry.path, others.get(entry.path, table["method"]), inode, entry.size, entry.mtime_ns)
        for entry, inode in zip(files, inodes, strict=True)
    )
    return Record(source, tuple(rows), samples)
