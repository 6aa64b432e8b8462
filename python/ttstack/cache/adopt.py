"""To make a cache of ours of a directory that engines filled before there was ttx, and to trust a checkpoint anew."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError, CacheRefusedError, NoSuchCacheError
from ttstack.cache.lock import KeyLock
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, read_marker, touch_used, write_marker
from ttstack.cache.registry import locked
from ttstack.cache.survey import standing_of
from ttstack.cache.types import Marker
from ttstack.cache.verify import examine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ttstack.cache.types import Builder, FileEntry

STILL_S = 120.0
"""How long nothing may have been written: the slowest engine known writes a file every few seconds while it builds."""

_SHOWN = 3  # faults


@dataclass(frozen=True, slots=True)
class Adoption:
    """What is said of a directory: whose it is to be, and from what. ``inputs`` must have its name as their key."""

    inputs: Mapping[str, object]
    builder: Builder
    checkpoint: str = ""  # the checkpoint's signature, now; "" when the model has no path


def adopt(
    root: Path, key: str, said: Adoption, *, now: float | None = None, tell: Callable[[str], None] = lambda _: None
) -> Marker:
    """Make a complete cache of an unmarked directory; nothing in it is changed.

    Whether its engine came up is the word of who asks; what can be seen is looked at: each file's header, left-over
    temporary files, and that nothing was written for two minutes. Raises NoSuchCacheError, CacheRefusedError,
    RegistryError and CacheError.
    """
    folder = root / key
    if key_of(said.inputs) != key:
        raise CacheError(f"{key} is not the key of these inputs: theirs is {key_of(said.inputs)}")
    lock = KeyLock(root, key).exclusive() if _adoptable(folder) else None
    if lock is None:
        raise CacheRefusedError(f"cache {key} is in use by a run", hint="who uses it: ttx cache ls")
    try:
        files = _sound(folder, time.time() if now is None else now, tell)
        with locked(root):
            _adoptable(folder)
            if scan(folder) != files:
                raise CacheRefusedError(f"{folder} was written to just now", hint=_hint())
            moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            marker = Marker(
                key=key,
                inputs=said.inputs,
                state="complete",
                builder=said.builder,
                made=moment,
                completed=moment,
                files=len(files),
                bytes=sum(file.size for file in files),
                checkpoint=said.checkpoint,
            )
            write_manifest(folder, files)
            write_marker(folder, marker)  # last: a marker without its manifest would be a fault
        touch_used(folder)
    finally:
        os.close(lock)
    return marker


def _hint() -> str:
    return f"wait until its engine is up and has written nothing for {STILL_S:g} s"


def _adoptable(folder: Path) -> bool:
    seen = standing_of(folder)
    if seen.standing != "unmarked":
        raise CacheRefusedError(
            f"{folder} is {seen.standing}{f' ({seen.text})' if seen.text else ''}: only an unmarked one can be adopted",
            hint=f"see: ttx cache show {folder.name}",
        )
    return True


def _sound(folder: Path, now: float, tell: Callable[[str], None]) -> tuple[FileEntry, ...]:
    files = scan(folder)
    if not files:
        raise CacheRefusedError(f"{folder} is empty", hint="start its arm, which fills it")
    newest = max(file.mtime_ns for file in files) / 1e9
    if now - newest < STILL_S:
        raise CacheRefusedError(f"{folder} was written to {max(0, now - newest):.0f} s ago", hint=_hint())
    report = examine(folder)
    if report.faults:
        shown = "; ".join(f"{fault.path}: {fault.text}" for fault in report.faults[:_SHOWN])
        more = f"; and {len(report.faults) - _SHOWN} more" if len(report.faults) > _SHOWN else ""
        raise CacheRefusedError(
            f"{folder} is not whole: {shown}{more}",
            hint="move it away, and let the arm build it anew",
            reason="cache_broken",
        )
    if report.unknown:
        tell(f"of {len(report.unknown)} of {report.files} files nothing but the size can be looked at")
    return files


def trust(root: Path, key: str, checkpoint: str) -> bool:
    """Take it that the checkpoint's files, as they are now, are those that a cache was made from.

    False when the marker says so already. Raises NoSuchCacheError, CacheRefusedError, RegistryError and CacheError.
    """
    folder = root / key
    with locked(root):
        marker = read_marker(folder)
        if marker is None and not folder.is_dir():
            raise NoSuchCacheError(f"there is no cache {key} under {root}", hint="what there is: ttx cache ls")
        if marker is None or marker.state != "complete" or marker.kind != "tensors":
            what = "unmarked" if marker is None else marker.state
            raise CacheRefusedError(
                f"cache {key} is {what}: only a complete tensor cache can be trusted",
                hint=f"see: ttx cache show {key}",
            )
        if marker.checkpoint == checkpoint:
            return False
        write_marker(folder, replace(marker, checkpoint=checkpoint))
    return True
