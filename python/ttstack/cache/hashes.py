"""The hashes of a cache's files, as a full verification found them: what a later one is compared with.

They are not taken when a cache is completed: reading a hundred gigabytes again takes as long as building some.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import LISTING, inside
from ttstack.cache.marker import write_beside
from ttstack.cache.strict import parse_object, read_bytes, shaped
from ttstack.cache.types import SCHEMA, FileEntry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HASHES = ".ttx-hashes.json"

_LIMIT = 256 << 20  # bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")


def write_hashes(folder: Path, hashes: Mapping[FileEntry, str]) -> None:
    """Write them down. Raises CacheError."""
    rows = ",\n".join(
        json.dumps([file.path, file.size, file.mtime_ns, digest])
        for file, digest in sorted(hashes.items(), key=lambda item: item[0].path)
    )
    write_beside(folder / HASHES, f'{{"schema": {SCHEMA}, "files": [\n{rows}\n]}}\n'.encode())


def read_hashes(folder: Path) -> dict[str, tuple[FileEntry, str]]:
    """Read them, by path; {} when there are none yet. Raises CacheError when they cannot be believed."""
    found = read_bytes(folder, HASHES, _LIMIT)
    if found is None:
        return {}
    where = folder / HASHES
    rows = shaped(parse_object(found.data, where), LISTING, where)["files"]
    return {entry[0].path: entry for entry in (_entry(row, where) for row in rows)}


def _entry(row: object, where: Path) -> tuple[FileEntry, str]:
    match row:
        case [str(path), int(size), int(mtime), str(digest)] if inside(path) and _SHA256.fullmatch(digest):
            return FileEntry(path, size, mtime), digest
    raise CacheError(f"{where}: {row!r} is no hash of a file", hint=f"remove {where}, and verify anew")
