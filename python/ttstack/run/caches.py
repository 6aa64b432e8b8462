"""What a run does with its tensor cache, between the cache room and the phases of a run."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.key import cache_key
from ttstack.cache import settle
from ttstack.cache.build import Start, begin, builder_of
from ttstack.cache.checkpoint import signature
from ttstack.cache.dirs import mark_jit
from ttstack.cache.errors import CacheRefusedError
from ttstack.cache.lock import KeyLock
from ttstack.cache.manifest import walk
from ttstack.cache.marker import read_marker
from ttstack.cache.reserve import check, reserve, wanted
from ttstack.cache.roots import known_roots
from ttstack.errors import TtxError
from ttstack.host import container_mounts
from ttstack.host.container_root import container_root, settings_of
from ttstack.records.types import CacheWork
from ttstack.run.control import runs
from ttstack.run.plan import read_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.arm.types import Asked
    from ttstack.cache.build import Held
    from ttstack.cache.registry import Registry
    from ttstack.cache.types import Directory
    from ttstack.host.types import Places
    from ttstack.render.launch import Launch
    from ttstack.run.plan import Plan
    from ttstack.slots.claim import Claim

_TELL_S = 1.0  # between two words about how far a copy is


@dataclass(slots=True)
class CacheInUse:
    """The cache of one run, as its ttx has it: a copy of the lock that the supervisor gets, until the run is over."""

    held: Held
    root: Path
    key: str
    run: str
    work: CacheWork
    since: float

    @property
    def building(self) -> bool:
        """Whether it was not complete when it was begun with."""
        return self.held.marker.state == "building"

    def complete(self, *, wrote: bool) -> CacheWork:
        """Settle it once the engine is identified; ``wrote``: its log tells of files that it made.

        Raises CacheError when what the engine left is not whole.
        """
        if self.building:
            whole = settle.complete(self.root, self.key, self.run, self.held.lock)
            self._note(max(0, whole.bytes - self.held.seeded))
        elif wrote:
            self.work = replace(self.work, bytes_written=max(0, tree_bytes(self.held.folder) - self.held.marker.bytes))
        return self.work

    def fail(self, reason: str) -> CacheWork:
        """Settle it as broken, unless it is complete or settled already. What cannot be written is left as it is."""
        if self.building:
            self._note(max(0, tree_bytes(self.held.folder) - self.held.seeded))
        with suppress(TtxError):
            settle.fail(self.root, self.key, self.run, reason)
        return self.work

    def withdraw(self) -> None:
        """Take a build back on which no engine was started. What cannot be taken back is abandoned when we are gone."""
        with suppress(TtxError):
            settle.withdraw(self.root, self.key, self.run)

    def let_go(self) -> None:
        """Close our copy of the lock."""
        os.close(self.held.lock)

    def _note(self, written: int) -> None:
        seconds = round(time.monotonic() - self.since, 6)
        self.work = replace(self.work, seconds=seconds, bytes_written=written)


@dataclass(frozen=True, slots=True)
class CacheWanted:
    """The cache that a start wants. ``owner``: number of the user whose the folders must be; None: ours."""

    asked: Asked
    launch: Launch
    places: Places
    claim: Claim
    owner: int | None

    def begin(self, tell: Callable[[str], None], nap: Callable[[], None]) -> CacheInUse:
        """Get it, and mark the kernel cache. ``nap`` may raise to give up.

        Raises CacheRefusedError, RegistryError, CacheError and HostError.
        """
        since = time.monotonic()
        model, launch = self.asked.model, self.launch
        start = Start(
            root=Path(launch.cache_dir).parent,
            locks=self.places.locks,
            key=launch.cache_key,
            inputs=cache_key(self.asked).inputs,
            builder=builder_of(self.claim),
            checkpoint=signature(Path(model.path)) if model.path else "",
            owner=self.owner,
            by_rename=self.asked.pin.cache_writes_by_rename,
            in_name=model.weights_env_in_name,
        )
        held = begin(start, self._room, tell=tell, progress=_Progress(tell, nap), in_use=self._users)
        work = CacheWork(
            key=start.key,
            seconds=round(time.monotonic() - since, 6),
            bytes_written=0,
            seeded_from=held.marker.seeded_from if held.warmth == "seed" else "",
            seeded_bytes=held.seeded,
            replaced=held.replaced,
        )
        found = CacheInUse(held, start.root, start.key, self.claim.run, work, since)
        try:
            mark_jit(Path(launch.jit_dir), start.builder, self.owner)
        except BaseException:
            found.withdraw()
            found.let_go()
            raise
        return found

    def _room(self, registry: Registry) -> int:
        disk = container_root(self.launch.runtime, settings_of(os.environ))
        want = wanted(self.asked, self.launch, registry, container_root=disk)
        check(reserve(registry.root, want, roots=known_roots(self.places.locks)))
        return want.expected

    def _users(self, directory: Directory) -> str:
        containers = self.launch.runtime != "process" or not self.places.simulated
        return users(directory, self.places.state, containers=containers)


def retake_cache(plan: Plan) -> int:
    """Take the lock of the cache of an engine that runs already; return its descriptor.

    Raises CacheRefusedError when somebody has it, CacheError.
    """
    lock = KeyLock(plan.cache_root, plan.launch.cache_key)
    marker = read_marker(Path(plan.launch.cache_dir))
    building = marker is not None and marker.state != "complete"
    handle = lock.exclusive() if building else lock.shared()
    if handle is None:
        raise CacheRefusedError(f"somebody has cache {plan.launch.cache_key}", hint="who: ttx cache ls, lslocks")
    return handle


class _Progress:
    """Says now and then how far a copy is."""

    def __init__(self, tell: Callable[[str], None], nap: Callable[[], None]) -> None:
        self._tell, self._nap = tell, nap
        self._next = time.monotonic() + _TELL_S

    def __call__(self, done: int, total: int) -> None:
        self._nap()
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELL_S
            self._tell(f"{done / 1e9:.1f} of {total / 1e9:.1f} GB are put")


def tree_bytes(folder: Path) -> int:
    """Add up a cache's files, ours left out; what cannot be looked at counts as nothing."""
    total = 0
    with suppress(TtxError):
        for _, seen in walk(folder):
            total += seen.st_size
    return total


def users(directory: Directory, state: Path, *, containers: bool) -> str:
    """Name who uses a directory whose lock is free: a container cannot hold one when its supervisor is gone."""
    for run in runs(state):
        if not (run.engine or run.trouble):
            continue
        try:
            key = read_plan(run.folder).launch.cache_key
        except (TtxError, KeyError, TypeError):
            continue  # of an older ttx, or another boot's: its container is looked for below
        if key == directory.key:
            return f"the engine of run {run.state.run} (`ttx adopt` or `ttx down` it)"
    if not containers:
        return ""
    told = container_mounts.look()
    real = os.path.realpath(directory.path)
    for one in told.found:
        if any(_related(os.path.realpath(source), real) for source in one.sources):
            return one.who
    return f"perhaps a container ({told.troubles[0]})" if told.troubles else ""


def _related(one: str, other: str) -> bool:
    """Whether a folder is another one, or one lies in the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one.rstrip('/')}/")
