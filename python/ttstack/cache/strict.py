"""JSON documents of ours, read so that only what we write passes: they lie where engines and people write, too."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ttstack.cache.errors import CacheError

if TYPE_CHECKING:
    from pathlib import Path

_CAREFULLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe in its place is not waited for
_CHUNK = 1 << 20


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
    path = folder / name
    try:
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = "is a link or no folder" if folder.is_symlink() or not folder.is_dir() else f"{error.strerror}"
        raise CacheError(f"cannot look into {folder}: {what}") from error
    try:
        handle = os.open(name, _CAREFULLY, dir_fd=inside)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = "it is a link" if path.is_symlink() else f"{error.strerror}"
        raise CacheError(f"cannot read {path}: {what}") from error
    finally:
        os.close(inside)
    try:
        return _read(handle, path, limit)
    except OSError as error:
        raise CacheError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(handle)


def _read(handle: int, path: Path, limit: int) -> Found:
    seen = os.fstat(handle)
    if not stat.S_ISREG(seen.st_mode):
        raise CacheError(f"{path} is not a regular file")
    data = bytearray()
    while len(data) <= limit:
        chunk = os.read(handle, min(_CHUNK, limit + 1 - len(data)))
        if not chunk:
            return Found(bytes(data), stamp_of(seen), seen.st_mode, seen.st_uid)
        data += chunk
    raise CacheError(f"{path} is larger than {limit} bytes")


def parse_object(data: bytes, where: object) -> dict[str, Any]:
    """Parse a JSON object. A key that is there twice, and a number that JSON has not, are faults. Raises CacheError."""
    try:
        value: object = json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
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


class Fields:
    """The members of an object, each of which must be asked for, once, with its type."""

    def __init__(self, table: object, where: object) -> None:
        if not isinstance(table, dict):
            raise CacheError(f"{where} is not a JSON object")
        self._left = dict(table)
        self._where = where

    def text(self, name: str, *, one_of: tuple[str, ...] = ()) -> str:
        """Take a text."""
        value = self._take(name)
        if not isinstance(value, str) or (one_of and value not in one_of):
            raise CacheError(f"{self._where}: {name} is {value!r}")
        return value

    def count(self, name: str) -> int:
        """Take a number that is 0 or more and fits 64 bits."""
        value = self._take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
            raise CacheError(f"{self._where}: {name} is {value!r}")
        return value

    def table(self, name: str) -> dict[str, Any]:
        """Take an object."""
        value = self._take(name)
        if not isinstance(value, dict):
            raise CacheError(f"{self._where}: {name} is {value!r}")
        return value

    def array(self, name: str) -> list[Any]:
        """Take an array."""
        value = self._take(name)
        if not isinstance(value, list):
            raise CacheError(f"{self._where}: {name} is {value!r}")
        return value

    def schema(self, known: int) -> None:
        """Take the number of the schema, and refuse any but the known one. Raises CacheError."""
        value = self._take("schema")
        if type(value) is not int or value != known:
            raise CacheError(
                f"{self._where} has schema {value!r}, and this ttx knows {known}",
                hint="a newer ttx wrote it: use that one",
            )

    def end(self) -> None:
        """Refuse what was not asked for."""
        if self._left:
            raise CacheError(f"{self._where}: {min(self._left)!r} is unknown")

    def _take(self, name: str) -> object:
        if name not in self._left:
            raise CacheError(f"{self._where}: {name} is missing")
        return self._left.pop(name)
