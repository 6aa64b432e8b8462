"""Delete caches that nobody uses and nobody used for some days, and what failed builds left behind.

For each directory, in this order: the registry's lock, the directory's own lock alone, all uses asked again, and only
then the rename into the trash. A dry run decides by the same code, over one look at the uses and at the locks.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from ttstack.cache import lock
from ttstack.cache.errors import CacheError, NoSuchCacheError
from ttstack.cache.marker import read_used
from ttstack.cache.registry import locked, read_only
from ttstack.cache.survey import standing_of, survey
from ttstack.cache.trash import Scales, Weight, remove, to_trash, trash_of
from ttstack.cache.types import MARKER, NEW, Use
from ttstack.cache.uses import ask_engines, mounted_now, uses
from ttstack.errors import TtxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ttstack.cache.types import Directory
    from ttstack.cache.uses import Sources, Uses

GRACE_S = 3600.0
"""What was made or used within this is kept, whatever else is said: a start may be on its way to it."""

DAY_S = 86400.0

Decision = Literal["keep", "delete", "deleted", "failed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to happen to one directory, and why."""

    decision: Decision
    reason: str
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One directory and what happened to it. ``freed``: what the disk gave, or would give, back."""

    directory: Directory
    verdict: Verdict
    weight: Weight = field(default_factory=Weight)


@dataclass(frozen=True, slots=True)
class Report:
    """What a gc did or would do. With anything ``unread`` it stopped there and deleted nothing more."""

    root: Path
    keep_days: float
    dry_run: bool
    entries: tuple[Entry, ...]
    unread: tuple[str, ...] = ()

    @property
    def freed(self) -> int:
        """Bytes that the disk gave, or would give, back."""
        return sum(entry.weight.freed for entry in self.entries)

    def count(self, decision: Decision) -> int:
        """How many directories that happened to."""
        return sum(entry.verdict.decision == decision for entry in self.entries)


class _UnreadError(Exception):
    """Uses could not be learned any more; ``unread`` says why."""

    def __init__(self, unread: tuple[str, ...]) -> None:
        super().__init__(*unread)
        self.unread = unread


def collect(
    sources: Sources,
    *,
    keep_days: float,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
    tell: Callable[[Entry], None] = lambda _: None,
) -> Report:
    """Delete what may go; ``tell`` hears of each directory when it is settled.

    Complete caches go when they were last used ``keep_days`` days ago or earlier, broken and abandoned ones always, but
    none that anybody uses. Raises RegistryError and CacheError when the root cannot be read: then nothing was deleted.
    """
    sources = replace(sources, asked=None, directories=None)  # who deletes asks himself, each time
    root = sources.root
    if not root.is_dir():
        return Report(root, keep_days, dry_run, ())
    if not lock.is_local(root):
        return Report(root, keep_days, dry_run, (), (f"{root} lies on a network or user-space file system",))
    trash_of(root)
    asked = ask_engines(sources)
    read_only(root)
    directories = survey(root)
    first = uses(replace(sources, asked=asked, directories=directories))
    if first.unread:
        kept = Verdict("keep", "it could not be learned who uses it")
        return Report(root, keep_days, dry_run, tuple(Entry(each, kept) for each in directories), first.unread)
    collector = _Collector(sources, keep_days, now, first, dry_run=dry_run)
    entries: list[Entry] = []
    unread: tuple[str, ...] = ()
    for directory in sorted(directories, key=lambda each: each.standing != "trash"):
        try:
            entry = collector.settle(directory) if not unread else Entry(directory, Verdict("keep", "gc stopped"))
        except _UnreadError as error:
            unread = error.unread
            entry = Entry(directory, Verdict("keep", "it could not be learned who uses it"))
        except NoSuchCacheError:
            continue  # somebody else removed it
        except CacheError as error:
            entry = Entry(directory, Verdict("failed", error.message))
        entries.append(entry)
        tell(entry)
    return Report(root, keep_days, dry_run, tuple(entries), unread)


def judge(directory: Directory, found: Uses, *, keep_days: float, now: float) -> Verdict:
    """Decide over one directory, whose lock is had. Raises CacheError when it cannot be looked at."""
    if directory.standing not in {"complete", "broken", "abandoned", "trash"}:
        return Verdict("keep", _not_ours(directory))
    try:
        mine = found.of(directory.path)
    except OSError as error:
        raise CacheError(f"cannot look at {directory.path}: {error.strerror}") from error
    if mine:
        return Verdict("keep", f"used by {', '.join(dict.fromkeys(use.who for use in mine))}", mine)
    return _by_age(directory, keep_days, now)


def _by_age(directory: Directory, keep_days: float, now: float) -> Verdict:
    if directory.standing == "trash":
        return Verdict("delete", "nothing was ever in it" if directory.text else "it was thrown away before")
    age = max(0.0, now - last_touched(directory))  # a time to come is now: some clock was wrong
    if age < GRACE_S:
        use = Use("grace", directory.path, f"made or used within the hour, {_ago(age)} ago")
        return Verdict("keep", use.who, (use,))
    if directory.standing != "complete":
        return Verdict("delete", f"{directory.standing}: {directory.text or 'no reason is told'}")
    return Verdict("keep" if age < keep_days * DAY_S else "delete", f"last used {_ago(age)} ago")


def last_touched(directory: Directory) -> float:
    """When a directory was last used or made, in seconds since the epoch: the latest of all that tells."""
    marker = directory.marker
    times = [directory.used or 0.0]
    times += [_seconds(text) for text in ((marker.made, marker.completed) if marker is not None else ())]
    try:
        times.append((directory.path / MARKER).lstat().st_mtime)
    except OSError as error:
        raise CacheError(f"cannot look at {directory.path / MARKER}: {error.strerror}") from error
    return max(times)


class _Collector:
    """One gc. ``dry``: locks are looked at and not taken, uses not asked again, and nothing is moved."""

    def __init__(
        self, sources: Sources, keep_days: float, now: Callable[[], float], first: Uses, *, dry_run: bool
    ) -> None:
        self._sources = sources
        self._keep_days = keep_days
        self._now = now
        self._first = first
        self._dry = dry_run
        self._scales = Scales()

    def settle(self, directory: Directory) -> Entry:
        """Decide over one directory and carry it out. Raises _UnreadError and CacheError."""
        verdict = self._judge(directory, self._first)
        if verdict.decision == "keep":
            return Entry(directory, verdict, _known(directory))
        if directory.standing == "trash" and directory.path.name != NEW:
            return self._remove(directory, verdict, directory.path)
        return self._throw_away(directory)

    def _judge(self, directory: Directory, found: Uses) -> Verdict:
        return judge(directory, found, keep_days=self._keep_days, now=self._now())

    def _throw_away(self, directory: Directory) -> Entry:
        with self._registry():
            # Standings change under the registry's lock only; by the directory's own lock, once we have it, we would
            # take ourselves for a builder.
            directory = standing_of(directory.path)
            with self._alone(directory) as other:
                if other is not None:
                    return Entry(directory, Verdict("keep", other.who, (other,)), _known(directory))
                directory = replace(directory, used=read_used(directory.path))
                verdict = self._judge(directory, self._look(directory.path))
                if verdict.decision == "keep":
                    return Entry(directory, verdict, _known(directory))
                place = directory.path if self._dry else to_trash(directory.path)
        return self._remove(directory, verdict, place)

    def _remove(self, directory: Directory, verdict: Verdict, place: Path) -> Entry:
        if self._dry:
            return Entry(directory, verdict, self._scales.weigh(place))
        mounted = self._mounted(place)
        if mounted:
            # By a start that looked it up before it was renamed. It is in the trash, and nobody else can come by.
            who = ", ".join(dict.fromkeys(use.who for use in mounted))
            return Entry(directory, Verdict("keep", f"thrown away, but still used by {who}", mounted))
        return Entry(directory, Verdict("deleted", verdict.reason), remove(place))

    def _mounted(self, place: Path) -> tuple[Use, ...]:
        try:
            return mounted_now(self._sources).of(place)
        except TtxError as error:
            raise _UnreadError((error.message,)) from error
        except OSError as error:
            raise CacheError(f"cannot look at {place}: {error.strerror}") from error

    def _look(self, ours: Path) -> Uses:
        found = self._first if self._dry else uses(replace(self._sources, ours=ours))
        if found.unread:
            raise _UnreadError(found.unread)
        return found

    def _registry(self) -> AbstractContextManager[object]:
        return nullcontext() if self._dry else locked(self._sources.root)

    @contextmanager
    def _alone(self, directory: Directory) -> Iterator[Use | None]:
        """Hold a directory's lock alone; give whoever has it instead. Kernel caches have none."""
        root, key = self._sources.root, directory.path.name
        if not lock.KEY.fullmatch(key):
            yield None
            return
        handle = None
        if not self._dry:
            handle = lock.KeyLock(root, key).exclusive()
        state = "free" if handle is not None else lock.state(root, key)
        try:
            if state == "free" and (handle is not None or self._dry):
                yield None
            else:
                who = "it is being built" if state == "exclusive" else "a run uses it"
                yield Use("lock", directory.path, who)
        finally:
            if handle is not None:
                os.close(handle)


def _not_ours(directory: Directory) -> str:
    texts = {"unmarked": "it has no marker of ours", "not ours": "not ours", "building": "it is being built"}
    text = texts.get(directory.standing, directory.standing)
    return f"{text}: {directory.text}" if directory.text else text


def _known(directory: Directory) -> Weight:
    marker = directory.marker
    return Weight() if marker is None else Weight(marker.files, marker.bytes, 0)


def _seconds(text: str) -> float:
    """Read a marker's time; 0.0 for none. Raises CacheError."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp() if text else 0.0
    except ValueError as error:
        raise CacheError(f"a marker holds {text!r}, which is no time") from error


def _ago(seconds: float) -> str:
    for size, name in ((DAY_S, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
