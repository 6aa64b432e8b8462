"""The registry as a file: what is believed of one, how it is written, and what can be kept of a spoilt one."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.cache.errors import CacheError, RegistryError
from ttstack.cache.marker import from_table, is_key, key_of, to_table
from ttstack.cache.strict import Found, parse_object, read_bytes, shaped
from ttstack.cache.tree import folder_at
from ttstack.cache.types import REGISTRY, SCHEMA, Marker

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT = 64 << 20  # bytes; a thousand caches take 1 MB
_KEPT = 10_000  # measurements
_WAY_OUT = "make it anew from the markers, and keep what can be kept of it: ttx cache rebuild-registry"

_SHAPE: dict[str, type] = {"schema": int, "history": dict, "caches": dict}
_MEASURED: dict[str, type] = {"inputs": dict, "bytes": int, "files": int, "completed": str}

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """How large a cache became when it was built whole."""

    inputs: Mapping[str, object]
    bytes: int
    files: int
    completed: str  # UTC


@dataclass(slots=True)
class Content:
    """What it holds. ``markers`` and ``stamps``, of their files, go by path from the root, ``history`` by key."""

    markers: dict[str, Marker] = field(default_factory=dict)
    history: dict[str, Measured] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)


def check(root: Path) -> None:
    """Raise RegistryError when the registry cannot be believed, without a look at the disk and at each marker in it."""
    _tables(root, find(root))


def _real(root: Path) -> Path:
    """Follow the links to a root, which people may choose; below it none is followed."""
    return Path(os.path.realpath(root))


def find(root: Path) -> Found | None:
    """Read the file; None when there is none. Raises RegistryError for one that others may have written."""
    try:
        found = read_bytes(_real(root), REGISTRY, LIMIT)
        if found is not None:
            _judge(found, root)
    except CacheError as error:
        raise _unbelievable(error) from error
    return found


def _judge(found: Found, root: Path) -> None:
    """Refuse a file that others than the root's writers could have written or can change."""
    where, seen = root / REGISTRY, root.stat()
    if found.mode & 0o002:
        raise CacheError(f"{where} may be written by everybody")
    if found.owner not in {0, os.geteuid(), seen.st_uid} and not seen.st_mode & 0o022:
        raise CacheError(f"{where} belongs to user {found.owner}, who may not write {root}")


def parse(root: Path, found: Found | None) -> Content:
    """Understand it. Raises RegistryError when any part cannot be believed."""
    content, where = Content(), root / REGISTRY
    history, caches = _tables(root, found)
    try:
        content.history = {key: _measured(key, entry, where) for key, entry in history.items()}
        for path, entry in caches.items():
            content.stamps[path], content.markers[path] = _entry(path, entry, where)
    except CacheError as error:
        raise _unbelievable(error) from error
    return content


def _tables(root: Path, found: Found | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give its history and its caches, whose places are under this root. Raises RegistryError."""
    if found is None:
        return {}, {}
    where = root / REGISTRY
    try:
        told = shaped(parse_object(found.data, where), _SHAPE, where)
    except CacheError as error:
        raise _unbelievable(error) from error
    for path in told["caches"]:
        if not folder_at(path):
            raise _unbelievable(CacheError(f"{where}: {path!r} is no directory of a cache under this root"))
    return told["history"], told["caches"]


def _unbelievable(error: CacheError) -> RegistryError:
    return RegistryError(f"the registry cannot be believed: {error.message}", hint=_way_out(error))


def _way_out(error: CacheError) -> str:
    return f"{error.hint}; or {_WAY_OUT}" if error.hint else _WAY_OUT


def _entry(path: str, entry: object, where: Path) -> tuple[Stamp, Marker]:
    match entry:
        case [[int(inode), int(mtime), int(size)], dict(table)]:
            return (inode, mtime, size), from_table(table, path.rpartition("/")[2], f"{where}: {path}")
    raise CacheError(f"{where}: {path} is not described as it should be")


def _measured(key: str, entry: object, where: object) -> Measured:
    told = shaped(entry, _MEASURED, f"{where}: {key}")
    if not is_key(key) or key_of(told["inputs"]) != key:
        raise CacheError(f"{where}: {key!r} is not the key of what is beside it")
    return Measured(told["inputs"], told["bytes"], told["files"], told["completed"])


def document(content: Content) -> bytes:
    """Write it with an entry a line, what cannot be had from the markers first: so a part of it is worth something."""
    newest = sorted(content.history, key=lambda key: (content.history[key].completed, key))[-_KEPT:]
    history = {key: _history_table(content.history[key]) for key in sorted(newest)}
    caches = {path: [content.stamps[path], to_table(content.markers[path])] for path in sorted(content.markers)}
    return (f'{{"schema": {SCHEMA},\n"history": {{{_lines(history)}}},\n"caches": {{{_lines(caches)}}}}}\n').encode()


def _lines(table: Mapping[str, object]) -> str:
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in table.items())
    return f"\n{rows}\n" if rows else ""


def _history_table(entry: Measured) -> dict[str, Any]:
    return {
        "inputs": dict(entry.inputs),
        "bytes": entry.bytes,
        "files": entry.files,
        "completed": entry.completed,
    }


def salvage(root: Path) -> dict[str, Measured]:
    """Find measurements in a registry that is no whole one: each line is one, and its key proves its inputs."""
    try:
        found = read_bytes(_real(root), REGISTRY, LIMIT)
    except CacheError:
        return {}  # a link, or no file: nothing of it is ours
    kept: dict[str, Measured] = {}
    for line in found.data.splitlines() if found is not None else []:
        with suppress(CacheError):
            ((key, entry),) = parse_object(b"{" + line.strip().rstrip(b",") + b"}", "a line").items()
            kept[key] = _measured(key, entry, "a line")
    return kept
