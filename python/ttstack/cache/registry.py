"""The registry: all that is known of a root's directories in one file, and what builds have measured.

It is never the truth about a directory. Each time that it is read it is laid beside the markers, and what they
contradict goes; only ``history`` (how large which cache became) outlives the directories.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError, CacheRefusedError, RegistryError
from ttstack.cache.lock import lock_folder
from ttstack.cache.marker import key_of, read_marker, write_beside
from ttstack.cache.registry_file import Content, Measured, document, find, parse, salvage
from ttstack.cache.strict import stamp_of
from ttstack.cache.tree import folders
from ttstack.cache.types import MARKER, REGISTRY
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory
from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ttstack.cache.registry_file import Stamp
    from ttstack.cache.strict import Found
    from ttstack.cache.types import Marker

WAIT_S = 30.0  # it is held for moments
_PAUSE_S = 0.003
_TICK_NS = 2_000_000_000  # more than any file system's
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@dataclass(slots=True)
class Registry:
    """What is known under one root."""

    root: Path
    content: Content = field(default_factory=Content)
    unwritten: str = ""  # why the file could not be written, when the disk has no room for it

    @property
    def markers(self) -> dict[str, Marker]:
        """The directories that have a sound marker, by path from the root."""
        return self.content.markers

    @property
    def history(self) -> dict[str, Measured]:
        """What builds have measured, by key."""
        return self.content.history

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
            if self.content.stamps.get(path) != stamp or stamp[1] > lately:
                self._look(path, stamp)

    def _forget(self, path: str) -> None:
        self.markers.pop(path, None)
        self.content.stamps.pop(path, None)

    def _look(self, path: str, stamp: Stamp) -> None:
        try:
            marker = read_marker(self.root / path)
        except CacheError:
            marker = None  # nobody's word about it can be believed; `ttx cache ls` says why
        if marker is None:
            self._forget(path)
            return
        self.markers[path] = marker
        self.content.stamps[path] = stamp
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


def read_only(root: Path) -> Registry:
    """Read the registry, laid beside the disk, and write nothing. Raises RegistryError, and CacheError for the root."""
    registry = Registry(root, parse(root, find(root)))
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
        found = find(root)
        registry = Registry(root, parse(root, found))
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
        try:
            history = parse(root, find(root)).history
        except RegistryError:
            history = salvage(root)
            aside = _set_aside(root)
        registry = Registry(root, Content(history=history))
        registry.refresh()
        _write(registry, None)
        if registry.unwritten:
            raise CacheError(registry.unwritten, hint="free space there: ttx cache gc --keep-days 0 --dry-run")
        return registry, aside


def _set_aside(root: Path) -> Path:
    """Give it another name, and leave it in its place until the new one is written over it, where that can be done."""
    here = root / REGISTRY
    aside = here.with_name(f"{REGISTRY}.unreadable-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{token_hex(4)}")
    try:
        try:
            os.link(here, aside, follow_symlinks=False)
        except OSError:
            here.rename(aside)  # a folder, or a file system without links
    except OSError as error:
        raise CacheError(f"cannot move {here} aside: {error.strerror}") from error
    return aside


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


def _write(registry: Registry, found: Found | None) -> None:
    registry.refresh()
    data = document(registry.content)
    if found is not None and found.data == data:
        return
    try:
        write_beside(registry.root / REGISTRY, data)
    except CacheError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _NO_ROOM:
            raise
        registry.unwritten = error.message
