"""From a start to a cache that it may use: a complete one, or a new one that it alone may build.

It is decided under the registry's lock, and what comes of it holds the key's lock. ``ttstack.cache.settle`` says how a
build ends.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ttstack.cache.dirs import (
    is_empty,
    make_marked,
    now,
    write_in_need,
)
from ttstack.cache.errors import CacheError, CacheRefusedError, NoSuchCacheError
from ttstack.cache.lock import KeyLock, alone, is_local
from ttstack.cache.marker import read_marker, touch_used, write_marker
from ttstack.cache.registry import locked
from ttstack.cache.roots import reserving
from ttstack.cache.seed import choose, seed
from ttstack.cache.settle import withdraw
from ttstack.cache.survey import standing_of
from ttstack.cache.trash import remove, to_trash
from ttstack.cache.types import Builder, Directory, Marker
from ttstack.cache.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from ttstack.cache.registry import Registry
    from ttstack.cache.verify import Fault
    from ttstack.slots.claim import Claim

_ROUNDS = 3  # a cache is found broken, removed, and made

Warmth = Literal["hit", "seed", "cold"]
"""hit: a complete one; seed: a new one that begins with the files of another; cold: a new one."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a start asks of a cache."""

    root: Path
    locks: Path  # of this host's cards, beside which all roots are known
    key: str
    inputs: Mapping[str, object]
    builder: Builder
    checkpoint: str = ""  # its signature; "" when the model has no path
    owner: int | None = None  # number of the user whose the folder must be; None: ours
    by_rename: bool = False  # the pin's engine writes beside and renames
    in_name: Collection[str] = ()  # the model's weights_env_in_name

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.root / self.key


@dataclass(frozen=True, slots=True)
class Held:
    """A cache that a start may use, with the descriptor that is its lock: close it to let go."""

    folder: Path
    lock: int
    warmth: Warmth
    marker: Marker
    replaced: str = ""  # what was wrong with the one that was in its place
    seeded: int = 0  # bytes


def builder_of(claim: Claim) -> Builder:
    """Make a marker's builder of a slot's claim."""
    return Builder(claim.run, claim.arm, claim.user, claim.process, claim.boot, claim.pid_namespace)


def begin(
    start: Start,
    reserve: Callable[[Registry], int],
    *,
    tell: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int], None] | None = None,
    in_use: Callable[[Directory], str] = lambda _: "",
) -> Held:
    """Get the cache that an engine is about to be started on.

    ``reserve`` says how large a new one is expected to be, bytes, or refuses for want of room; it is asked under the
    locks of the host's reservations and of the registry, so that two starts see each other.

    A complete one is looked through first. One that is broken or abandoned is removed and built anew, unless ``in_use``
    names somebody who uses it without a lock (a container cannot hold one). ``tell`` hears what is done, ``progress``
    of bytes put and in all while a seed is copied; both may raise to give up.

    Raises CacheRefusedError when it is being built or used, when its checkpoint is another, when it is not ours and
    when there is no room; RegistryError; CacheError.
    """
    if not is_local(start.root):
        raise CacheRefusedError(
            f"{start.root} lies on a network or user-space file system, where locks cannot be relied on",
            hint="set TTX_CACHE to a folder on a local disk",
        )
    replaced = ""
    for _ in range(_ROUNDS):
        found = _attempt(start, reserve, in_use)
        if isinstance(found, Held) and found.marker.state == "building":
            return _seeded(start, replace(found, replaced=replaced), tell, progress)
        if isinstance(found, Held):
            fault = _look_through(start, found)
            if not fault:
                return found
            continue
        tell(f"cache {start.key} is removed and built anew: {found.why}")
        with suppress(CacheError):
            remove(found.trash)  # what does not go stays in the trash, which anybody may empty
        replaced = found.why
    raise CacheRefusedError(
        f"cache {start.key} is found broken again and again", hint=f"see: ttx cache show {start.key}"
    )


@dataclass(frozen=True, slots=True)
class _Remains:
    trash: Path
    why: str


def _attempt(start: Start, reserve: Callable[[Registry], int], in_use: Callable[[Directory], str]) -> Held | _Remains:
    with reserving(start.locks, start.root), locked(start.root) as registry:
        seen = _standing(start)
        if seen is None or (seen.standing == "unmarked" and is_empty(start.folder)):
            return _make(start, reserve(registry))
        if seen.marker is not None and seen.standing == "complete":
            return _use(start, seen.marker)
        if seen.marker is not None and seen.standing in {"abandoned", "broken"}:
            return _bury(start, seen, in_use)
        raise _refusal(start, seen)


def _standing(start: Start) -> Directory | None:
    try:
        return standing_of(start.folder)
    except NoSuchCacheError:
        return None


def _refusal(start: Start, seen: Directory) -> CacheRefusedError:
    if seen.marker is not None and seen.standing == "building":
        who = seen.marker.builder
        return CacheRefusedError(
            f"cache {start.key} is being built by run {who.run} (arm {who.arm}, user {who.user})",
            hint=f"wait until it is up, or end it: ttx down {who.run}",
        )
    if seen.standing == "unmarked":
        return CacheRefusedError(
            f"{start.folder} holds files and no marker of ttx, so nobody can tell what they were made from",
            hint=f"if they are this arm's: ttx cache adopt {start.key} --arm {start.builder.arm}; else move them away",
        )
    return CacheRefusedError(
        f"{start.folder} cannot be used: {seen.text or seen.standing}", hint=f"see: ttx cache show {start.key}"
    )


def _alone(start: Start) -> int:
    handle = KeyLock(start.root, start.key).exclusive()
    if handle is None:
        raise CacheRefusedError(
            f"cache {start.key} is in use by another run", hint="who uses it: ttx cache ls, ttx slot ls"
        )
    return handle


def _make(start: Start, expected: int) -> Held:
    lock = _alone(start)
    try:
        marker = Marker(
            start.key, start.inputs, "building", start.builder, now(), expected=expected, checkpoint=start.checkpoint
        )
        make_marked(start.folder, marker, start.owner)
    except BaseException:
        os.close(lock)
        raise
    return Held(start.folder, lock, "cold", marker)


def _use(start: Start, marker: Marker) -> Held:
    if marker.checkpoint != start.checkpoint:
        raise CacheRefusedError(
            f"the checkpoint's files are not those that cache {start.key} was made from (another size or time, or"
            " another name)",
            hint="give the model another `revision` in models.toml, which makes another cache; when the bytes are the"
            f" same: ttx cache trust {start.key}",
            reason="checkpoint_changed",
        )
    lock = KeyLock(start.root, start.key).shared()
    if lock is None:
        raise CacheRefusedError(f"somebody has cache {start.key} for himself", hint="see: ttx cache ls, lslocks")
    return Held(start.folder, lock, "hit", marker)


def _look_through(start: Start, held: Held) -> str:
    """Look through a complete cache; say what is wrong, once it is marked as broken and let go."""
    try:
        fault = _fault(start, held)
        if not fault:
            touch_used(held.folder)
            return ""
        with locked(start.root):
            if read_marker(held.folder) == held.marker:
                write_in_need(held.folder, replace(held.marker, state="broken", reason=fault))
    except BaseException:
        os.close(held.lock)
        raise
    os.close(held.lock)
    return fault


def _fault(start: Start, held: Held) -> str:
    found = _against(held)
    if found and not found[0].listed:
        # What came later is another run's, which may be writing it just now, or was as we looked: so look again.
        again = _against(held) if alone(start.root, held.lock) else []
        found = [fault for fault in again if fault.listed or fault in found]
    return f"{found[0].path}: {found[0].text}" if found else ""


def _against(held: Held) -> list[Fault]:
    """Say what is wrong with a cache, listed files first; a temporary file that came later is never loaded."""
    found = [fault for fault in verify(held.folder) if fault.listed or fault.kind != "leftover"]
    return sorted(found, key=lambda fault: not fault.listed)


def _bury(start: Start, seen: Directory, in_use: Callable[[Directory], str]) -> _Remains:
    lock = _alone(start)
    try:
        who = in_use(seen)
        if who:
            raise CacheRefusedError(
                f"cache {start.key} is of no use ({seen.text}), and {who} still has it",
                hint="end that first, then this start removes it",
            )
        return _Remains(to_trash(start.folder), seen.text or seen.standing)
    finally:
        os.close(lock)


def _seeded(start: Start, held: Held, tell: Callable[[str], None], progress: Callable[[int, int], None] | None) -> Held:
    """Begin a new cache with the files of another one, when there is one whose files must be the same."""
    try:
        chosen = choose(start.root, start.inputs, in_name=start.in_name, checkpoint=start.checkpoint)
        if chosen.key is None:
            return held
        tell(f"it begins with the files of cache {chosen.key}")
        marker = _note(start, replace(held.marker, seeded_from=chosen.key))
        try:
            done = seed(start.root / chosen.key, start.folder, by_rename=start.by_rename, progress=progress)
        except CacheError as error:
            tell(f"it begins with nothing: {error.message}")
            return replace(held, marker=_note(start, held.marker))
        return replace(held, marker=marker, warmth="seed", seeded=done.bytes)
    except BaseException:
        withdraw(start.root, start.key, start.builder.run)
        os.close(held.lock)
        raise


def _note(start: Start, marker: Marker) -> Marker:
    with locked(start.root):
        write_marker(start.folder, marker)
    return marker
