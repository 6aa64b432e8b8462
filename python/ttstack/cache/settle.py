"""How a build ends: complete, broken, or taken back.

``complete`` after the engine was identified, ``fail`` with the reason on every other end, ``withdraw`` when no engine
was started. Should all of ours be killed, nothing of this happens: the marker says building and nobody holds the lock.
That is "abandoned", and the next start removes it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.cache.dirs import drop_spare, now, sync_files, write_in_need
from ttstack.cache.errors import CacheError
from ttstack.cache.lock import to_shared
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.registry import locked
from ttstack.cache.seed_check import check_seeds
from ttstack.cache.trash import remove, to_trash
from ttstack.cache.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.cache.types import Builder, FileEntry, Marker


def complete(root: Path, key: str, run: str, handle: int) -> Marker:
    """Settle a build whose engine was identified: look at all of it, and call it complete if it is whole.

    ``handle``: the key's lock, which becomes a reader's, in all its copies. Raises CacheError (``cache_broken``), after
    it was marked as broken, when it is not whole; CacheError when it is not this run's build.
    """
    folder = root / key
    _mine(folder, run)
    try:
        files, fault = _judge(root, folder)
    except CacheError as error:
        files, fault = (), error.message
    if fault:
        fail(root, key, run, fault)
        raise CacheError(
            f"the engine left a tensor cache that is not whole: {fault}",
            hint="the next start removes it and builds it anew",
            reason="cache_broken",
        )
    with locked(root):
        whole = replace(
            _mine(folder, run),
            state="complete",
            completed=now(),
            files=len(files),
            bytes=sum(entry.size for entry in files),
        )
        write_marker(folder, whole)
        to_shared(root, handle)
    drop_spare(folder)
    return whole


def _judge(root: Path, folder: Path) -> tuple[tuple[FileEntry, ...], str]:
    """Look at a cache that was just built; write down its files and say what is wrong with them."""
    files = scan(folder)
    if not files:
        return files, "the engine wrote nothing into it"
    sync_files(folder, files)
    write_manifest(folder, files)
    seeds = check_seeds(folder)
    if seeds.changed:
        _spoilt(root, {*seeds.damaged} - {folder.name}, f"{seeds.text}, which is this one's too")
        return files, seeds.text
    faults = verify(folder)
    if not faults:
        return files, ""
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return files, f"{faults[0].path}: {faults[0].text}{more}"


def _spoilt(root: Path, keys: set[str], reason: str) -> None:
    """Mark complete caches as broken whose files were written into through another name."""
    with locked(root):
        for key in sorted(keys):
            marker = read_marker(root / key)
            if marker is not None and marker.state == "complete":
                write_in_need(root / key, replace(marker, state="broken", reason=reason))


def _mine(folder: Path, run: str) -> Marker:
    marker = read_marker(folder)
    if marker is None or marker.state != "building" or marker.builder.run != run:
        what = "not there" if marker is None else f"{marker.state}, of run {marker.builder.run}"
        raise CacheError(f"cache {folder.name} is no longer being built by run {run}: its marker is {what}")
    return marker


def fail(root: Path, key: str, run: str, reason: str) -> bool:
    """Mark a build of this run as broken; False when there is none, as it is complete or settled. Raises CacheError."""
    folder = root / key
    if not folder.is_dir():
        return False
    with locked(root):
        marker = read_marker(folder)
        if marker is None or marker.state != "building" or marker.builder.run != run:
            return False
        write_in_need(folder, replace(marker, state="broken", reason=reason))
    drop_spare(folder)
    return True


def withdraw(root: Path, key: str, run: str) -> bool:
    """Take a build back on which no engine was started; False when there is none of this run.

    Only for who holds its lock. Raises CacheError.
    """
    folder = root / key
    with locked(root):
        marker = read_marker(folder)
        if marker is None or marker.state != "building" or marker.builder.run != run:
            return False
        trash = to_trash(folder)
    with suppress(CacheError):
        remove(trash)  # what does not go stays in the trash, which anybody may empty
    return True


def take_over(root: Path, key: str, builder: Builder) -> None:
    """Become the builder of a build of one's own run, whose first supervisor is gone. Raises CacheError."""
    folder = root / key
    with locked(root):
        marker = read_marker(folder)
        if marker is not None and marker.state == "building" and marker.builder.run == builder.run:
            write_marker(folder, replace(marker, builder=builder))
