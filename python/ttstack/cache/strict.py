"""JSON documents of ours, read so that only what we write passes: they lie where engines and people write, too."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ttstack.cache.errors import CacheError
from ttstack.cache.types import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CAREFULLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe in its place is not waited for
_LEAST = 4096  # a buffer of a megabyte for each would take longer than the reading
_NUMBERS = 1 << 63


@dataclass(frozen=True, slots=True)
class Found:
    """What a file held, and which file it was: after a rename over it, the stamp is another."""

    data: bytes
    stamp: tuple[int, int, int]  # inode, mtime in ns, size
    mode: int
    owner: int


def stamp_of(seen: os.stat_result) -> tuple[int, int, int]:
    """Tell one version of a file that is written by rename from another."""
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def read_bytes(folder: Path, name: str, limit: int) -> Found | None:
    """Read a small regular file of a folder; None when there is none of that name.

    Neither the folder nor the file may be a link. Raises CacheError, also when it is larger than ``limit`` bytes.
    """
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise CacheError(f"cannot look into {folder}: it is a link or no folder")
        handle = os.open(f"{folder}/{name}", _CAREFULLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        path = folder / name
        what = "it is a link" if path.is_symlink() else f"{error.strerror}"
        raise CacheError(f"cannot read {path}: {what}") from error
    try:
        return _read(handle, folder, name, limit)
    except OSError as error:
        raise CacheError(f"cannot read {folder / name}: {error.strerror}") from error
    finally:
        os.close(handle)


def _read(handle: int, folder: Path, name: str, limit: int) -> Found:
    seen = os.fstat(handle)
    if not stat.S_ISREG(seen.st_mode):
        raise CacheError(f"{folder / name} is not a regular file")
    data = b""
    while len(data) <= limit:
        wanted = min(max(seen.st_size + 1 - len(data), _LEAST), limit + 1 - len(data))
        chunk = os.read(handle, wanted)
        data += chunk
        if len(chunk) < wanted:  # of a regular file that is its end
            return Found(data, stamp_of(seen), seen.st_mode, seen.st_uid)
    raise CacheError(f"{folder / name} is larger than {limit} bytes")


def parse_object(data: bytes, where: object) -> dict[str, Any]:
    """Parse a JSON object. A key that is there twice, and a number that JSON has not, are faults. Raises CacheError."""
    try:
        value: object = _DECODER.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise CacheError(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CacheError(f"{where} does not hold a JSON object")
    return cast("dict[str, Any]", value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is there twice")
    return table


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


def shaped(table: object, shape: Mapping[str, type], where: object, part: str = "") -> dict[str, Any]:
    """Return an object that has exactly these members, of exactly these types; a number is 0 or more and fits 64 bits.

    Where ``schema`` is among them, it must be the one that is known. Raises CacheError.
    """
    if not isinstance(table, dict):
        raise CacheError(f"{where}{part} is not a JSON object")
    if "schema" in shape and not (type(table.get("schema")) is int and table["schema"] == SCHEMA):
        raise CacheError(
            f"{where}{part} has schema {table.get('schema')!r}, and this ttx knows {SCHEMA}",
            hint="a newer ttx wrote it: use that one",
        )
    if {name: type(value) for name, value in table.items()} != shape:
        raise CacheError(f"{where}{part}: {_misfit(table, shape)}")
    for name, value in table.items():
        if type(value) is int and not 0 <= value < _NUMBERS:
            raise CacheError(f"{where}{part}: {name} is {value!r}")
    return table


def _misfit(table: Mapping[str, object], shape: Mapping[str, type]) -> str:
    for name, kind in shape.items():
        if name not in table:
            return f"{name} is missing"
        if type(table[name]) is not kind:
            return f"{name} is {table[name]!r}"
    return f"{min(table.keys() - shape.keys())!r} is unknown"
