"""The registry: all that is known of a root's directories in one file, and what builds have measured.

It is never the truth about a directory. Each time that it is read it is laid beside the markers, and what they
contradict goes; only ``history`` (how large which cache became) outlives the directories.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.cache.errors import CacheError, CacheRefusedError, RegistryError
from ttstack.cache.lock import lock_folder
from ttstack.cache.marker import from_table, is_key, key_of, read_marker, to_table, write_beside
from ttstack.cache.strict import Found, parse_object, read_bytes, shaped, stamp_of
from ttstack.cache.tree import folder_at, folders
from ttstack.cache.types import MARKER, REGISTRY, SCHEMA, Marker
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory
from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMIT = 64 << 20  # bytes; a thousand caches take 1 MB
WAIT_S = 30.0  # it is held for moments
_PAUSE_S = 0.003
_TICK_NS = 2_000_000_000  # more than any file system's
_KEPT = 10_000  # measurements
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
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
class Registry:
    """What is known under one root. ``markers``: by path from the root, of the directories that have a sound one."""

    root: Path
    markers: dict[str, Marker] = field(default_factory=dict)
    history: dict[str, Measured] = field(default_factory=dict)  # by key
    unwritten: str = ""  # why the file could not be written, when the disk has no room for it
    _stamps: dict[str, Stamp] = field(default_factory=dict)

    def refresh(self) -> None:
        """Lay it beside the disk: what no marker says goes, and what a marker says anew comes. Raises CacheError."""
        there = {}
        # Clocks of files tick; two writes within a tick, of one length, in an inode that was free again, look the same.
        lately = time.time_ns() - _TICK_NS
        for path, folder in folders(self.root):
            with suppress(OSError):  # gone meanwhile, or no marker: no fact, either way
                there[path] = stamp_of((folder / MARKER).lstat())
        for path in self.markers.keys() - there.keys():
            self._forget(path)
        for path, stamp in there.items():
            if self._stamps.get(path) != stamp or stamp[1] > lately:
                self._look(path, stamp)

    def _forget(self, path: str) -> None:
        self.markers.pop(path, None)
        self._stamps.pop(path, None)

    def _look(self, path: str, stamp: Stamp) -> None:
        try:
            marker = read_marker(self.root / path)
        except CacheError:
            marker = None  # nobody's word about it can be believed; `ttx cache ls` says why
        if marker is None:
            self._forget(path)
            return
        self.markers[path] = marker
        self._stamps[path] = stamp
        if marker.kind == "tensors" and marker.state == "complete" and marker.bytes:
            self.history[marker.key] = Measured(marker.inputs, marker.bytes, marker.files, marker.completed)

    def expected_bytes(self, inputs: Mapping[str, object]) -> int | None:
        """How large the cache of these inputs will be: as measured for the same key, else for the same model and mesh.

        Of several such the one that has most inputs in common, then the largest. None when there is none.
        """
        same = self.history.get(key_of(inputs))
        if same is not None:
            return same.bytes
        near = [
            (sum(entry.inputs.get(name) == value for name, value in inputs.items()), entry.bytes)
            for entry in self.history.values()
            if all(entry.inputs.get(name) == inputs.get(name) for name in ("model", "mesh"))
        ]
        return max(near)[1] if near else None


def check(root: Path) -> None:
    """Raise RegistryError when the registry cannot be believed; the disk is not looked at."""
    _parse(root, _found(root))


def read_only(root: Path) -> Registry:
    """Read the registry, laid beside the disk, and write nothing. Raises RegistryError, and CacheError for the root."""
    registry = _parse(root, _found(root))
    registry.refresh()
    return registry


@contextmanager
def locked(root: Path, *, wait_s: float = WAIT_S) -> Iterator[Registry]:
    """Hold the registry's lock, for all that changes what directories there are, or their markers.

    What was changed on the disk in the meantime is in the registry when this is left, also by an exception. Hold it for
    moments: never while files are copied or removed. A disk without room for it is no fault, as the markers say it all:
    ``unwritten`` then tells. Raises RegistryError when it cannot be believed, CacheRefusedError when others hold it
    for ``wait_s`` seconds, CacheError.
    """
    with _held(root, wait_s):
        found = _found(root)
        registry = _parse(root, found)
        registry.refresh()
        try:
            yield registry
        except BaseException:
            with suppress(CacheError):  # the first fault is the one to tell
                _write(registry, found)
            raise
        _write(registry, found)


def rebuild(root: Path, *, wait_s: float = WAIT_S) -> tuple[Registry, Path | None]:
    """Make the registry anew from the markers. Of what it measured all is kept that can be understood.

    One that cannot be believed is moved aside, never overwritten: its new place is returned, too. Raises CacheError.
    """
    with _held(root, wait_s):
        aside = None
        history: dict[str, Measured] = {}
        try:
            history = _parse(root, _found(root)).history
        except RegistryError:
            history = _salvage(root)
            aside = (
                root / f"{REGISTRY}.unreadable-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
            )
            try:
                (root / REGISTRY).rename(aside)
            except OSError as error:
                raise CacheError(f"cannot move {root / REGISTRY} aside: {error.strerror}") from error
        registry = Registry(root, history=history)
        registry.refresh()
        _write(registry, None)
        if registry.unwritten:
            raise CacheError(registry.unwritten, hint="free space there: ttx cache gc --keep-days 0 --dry-run")
        return registry, aside


@contextmanager
def _held(root: Path, wait_s: float) -> Iterator[None]:
    path = lock_folder(_made(root)) / "registry"
    end = time.monotonic() + wait_s
    try:
        handle = try_lock(path)
        while handle is None:
            if time.monotonic() > end:
                raise CacheRefusedError(
                    f"the registry of {root} stayed locked for {wait_s:g} s", hint=f"who has it: fuser {path}"
                )
            time.sleep(_PAUSE_S)
            handle = try_lock(path)
    except SlotsError as error:
        raise CacheError(error.message, hint=error.hint) from error
    try:
        yield
    finally:
        os.close(handle)


def _made(root: Path) -> Path:
    try:
        return make_directory(root)
    except HostError as error:
        raise CacheError(error.message, hint=error.hint) from error


def _real(root: Path) -> Path:
    """Follow the links to a root, which people may choose; below it none is followed."""
    return Path(os.path.realpath(root))


def _found(root: Path) -> Found | None:
    try:
        found = read_bytes(_real(root), REGISTRY, LIMIT)
        if found is not None:
            _judge(found, root)
    except CacheError as error:
        raise RegistryError(f"the registry cannot be believed: {error.message}", hint=_way_out(error)) from error
    return found


def _judge(found: Found, root: Path) -> None:
    """Refuse a file that others than the root's writers could have written or can change."""
    where, seen = root / REGISTRY, root.stat()
    if found.mode & 0o002:
        raise CacheError(f"{where} may be written by everybody")
    if found.owner not in {0, os.geteuid(), seen.st_uid} and not seen.st_mode & 0o022:
        raise CacheError(f"{where} belongs to user {found.owner}, who may not write {root}")


def _parse(root: Path, found: Found | None) -> Registry:
    registry = Registry(root)
    if found is None:
        return registry
    where = root / REGISTRY
    try:
        told = shaped(parse_object(found.data, where), _SHAPE, where)
        registry.history = {key: _measured(key, entry, where) for key, entry in told["history"].items()}
        for path, entry in told["caches"].items():
            registry._stamps[path], registry.markers[path] = _entry(path, entry, where)  # noqa: SLF001 - made here
    except CacheError as error:
        raise RegistryError(f"the registry cannot be believed: {error.message}", hint=_way_out(error)) from error
    return registry


def _way_out(error: CacheError) -> str:
    return f"{error.hint}; or {_WAY_OUT}" if error.hint else _WAY_OUT


def _entry(path: str, entry: object, where: Path) -> tuple[Stamp, Marker]:
    if not folder_at(path):
        raise CacheError(f"{where}: {path!r} is no directory of a cache under this root")
    match entry:
        case [[int(inode), int(mtime), int(size)], dict(table)]:
            return (inode, mtime, size), from_table(table, path.rpartition("/")[2], f"{where}: {path}")
    raise CacheError(f"{where}: {path} is not described as it should be")


def _measured(key: str, entry: object, where: object) -> Measured:
    told = shaped(entry, _MEASURED, f"{where}: {key}")
    if not is_key(key) or key_of(told["inputs"]) != key:
        raise CacheError(f"{where}: {key!r} is not the key of what is beside it")
    return Measured(told["inputs"], told["bytes"], told["files"], told["completed"])


def _write(registry: Registry, found: Found | None) -> None:
    registry.refresh()
    data = _document(registry)
    if found is not None and found.data == data:
        return
    try:
        write_beside(registry.root / REGISTRY, data)
    except CacheError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _NO_ROOM:
            raise
        registry.unwritten = error.message


def _document(registry: Registry) -> bytes:
    """Write it with an entry a line, what cannot be had from the markers first: so a part of it is worth something."""
    newest = sorted(registry.history, key=lambda key: (registry.history[key].completed, key))[-_KEPT:]
    history = {key: _history_table(registry.history[key]) for key in sorted(newest)}
    caches = {
        path: [registry._stamps[path], to_table(registry.markers[path])]  # noqa: SLF001 - this module's own
        for path in sorted(registry.markers)
    }
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


def _salvage(root: Path) -> dict[str, Measured]:
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
