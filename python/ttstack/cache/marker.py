"""The marker: one small file inside each directory that we made, which alone says what the directory is."""

from __future__ import annotations

import json
import os
import re
import stat
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, get_args

from ttstack.arm.canonical import canonical_json
from ttstack.arm.key import DIGITS
from ttstack.cache.errors import CacheError
from ttstack.cache.strict import parse_object, read_bytes, shaped
from ttstack.cache.types import MARKER, SCHEMA, USED, Builder, Kind, Marker, State
from ttstack.host.errors import HostError
from ttstack.host.files import write_atomic
from ttstack.host.types import ProcessId

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LIMIT = 1 << 20  # bytes; a marker is some 1000

_KEY = re.compile(rf"[0-9a-f]{{{DIGITS}}}", re.ASCII)
_PLAIN = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
_EXACT = {str, int, bool, type(None)}
_STATES = frozenset(get_args(State))
_KINDS = frozenset(get_args(Kind))
_SHAPE: dict[str, type] = {
    "schema": int,
    "kind": str,
    "key": str,
    "state": str,
    "inputs": dict,
    "builder": dict,
    "made": str,
    "completed": str,
    "reason": str,
    "files": int,
    "bytes": int,
    "expected": int,
    "seeded_from": str,
    "checkpoint": str,
}
_BUILDER: dict[str, type] = {
    "run": str,
    "arm": str,
    "user": str,
    "pid": int,
    "start": int,
    "boot_id": str,
    "pid_namespace": int,
}


def is_key(name: str) -> bool:
    """Whether a name is that of a tensor cache."""
    return _KEY.fullmatch(name) is not None


def key_of(inputs: Mapping[str, object]) -> str:
    """Compute the key that these inputs have (arm/key.py). Raises CacheError for what has no canonical form."""
    try:
        text = _PLAIN.encode(inputs) if _is_plain(inputs) else canonical_json(inputs)
        return sha256(text.encode()).hexdigest()[:DIGITS]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CacheError(f"inputs that have no canonical form: {error}") from error


def _is_plain(value: object) -> bool:
    """Whether JSON's own encoder, which is many times as fast, writes the canonical form: it does but for fractions."""
    if type(value) is not dict:
        return type(value) in _EXACT
    for name, inner in value.items():  # a loop takes half the time of all()
        if type(name) is not str or not (type(inner) in _EXACT or _is_plain(inner)):
            return False
    return True


def read_marker(folder: Path) -> Marker | None:
    """Read a directory's marker; None when it has none, or is not there.

    Raises CacheError for one that cannot be believed: a link, no regular file, oversized, cut off, of another schema,
    of another directory, or with a key that is not that of its inputs.
    """
    found = read_bytes(folder, MARKER, LIMIT)
    return None if found is None else parse_marker(found.data, folder)


@lru_cache(4096)
def parse_marker(data: bytes, folder: Path) -> Marker:
    """Understand a marker's bytes. Raises CacheError. Those of a whole root are read more than once by one command."""
    where = folder / MARKER
    return from_table(parse_object(data, where), folder.name, where)


def from_table(table: object, name: str, where: object) -> Marker:
    """Make a marker of the JSON object that describes the directory ``name``. Raises CacheError."""
    told = shaped(table, _SHAPE, where)
    who = shaped(told["builder"], _BUILDER, where, ": builder")
    if told["state"] not in _STATES or told["kind"] not in _KINDS:
        raise CacheError(f"{where}: state is {told['state']!r}, kind is {told['kind']!r}")
    marker = Marker(
        key=told["key"],
        inputs=told["inputs"],
        state=told["state"],
        builder=Builder(
            who["run"],
            who["arm"],
            who["user"],
            ProcessId(who["pid"], who["start"]),
            who["boot_id"],
            who["pid_namespace"],
        ),
        made=told["made"],
        kind=told["kind"],
        completed=told["completed"],
        reason=told["reason"],
        files=told["files"],
        bytes=told["bytes"],
        expected=told["expected"],
        seeded_from=told["seeded_from"],
        checkpoint=told["checkpoint"],
    )
    if marker.key != name:
        raise CacheError(f"{where} is the marker of {marker.key!r}, not of {name!r}")
    if marker.kind == "tensors" and key_of(marker.inputs) != marker.key:
        raise CacheError(f"{where}: its inputs have the key {key_of(marker.inputs)}")
    return marker


def to_table(marker: Marker) -> dict[str, Any]:
    """Make a JSON object of a marker."""
    who = marker.builder
    return {
        "schema": SCHEMA,
        "kind": marker.kind,
        "key": marker.key,
        "state": marker.state,
        "inputs": dict(marker.inputs),
        "builder": {
            "run": who.run,
            "arm": who.arm,
            "user": who.user,
            "pid": who.process.pid,
            "start": who.process.start,
            "boot_id": who.boot,
            "pid_namespace": who.pid_namespace,
        },
        "made": marker.made,
        "completed": marker.completed,
        "reason": marker.reason,
        "files": marker.files,
        "bytes": marker.bytes,
        "expected": marker.expected,
        "seeded_from": marker.seeded_from,
        "checkpoint": marker.checkpoint,
    }


def write_marker(folder: Path, marker: Marker, *, at: Path | None = None) -> None:
    """Replace a directory's marker, whole or not at all. ``at``: where the directory is as long as it has none.

    Raises CacheError, also for what could not be read back.
    """
    try:
        data = f"{json.dumps(to_table(marker), indent=1, allow_nan=False, default=_plain)}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CacheError(f"a marker cannot hold that: {error}") from error
    parse_marker(data, folder)
    write_beside((at or folder) / MARKER, data)


def _plain(value: object) -> object:
    from collections.abc import Mapping  # noqa: PLC0415 - the type alone is needed above

    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def write_beside(path: Path, data: bytes) -> None:
    """Put a file of ours into a directory. Raises CacheError, whose ``__cause__`` is the OSError."""
    try:
        write_atomic(path, data)
    except HostError as error:
        raise CacheError(error.message, hint=error.hint) from error.__cause__


def touch_used(folder: Path) -> None:
    """Note that a directory is used now. Raises CacheError."""
    path = folder / USED
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise CacheError(f"{path} is not a regular file")
            os.utime(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise CacheError(f"cannot touch {path}: {error.strerror}") from error


def read_used(folder: Path) -> float | None:
    """When a directory was last used, in seconds since the epoch; None when that is not told."""
    try:
        seen = os.lstat(f"{folder}/{USED}")
    except OSError:
        return None
    return seen.st_mtime if stat.S_ISREG(seen.st_mode) else None
