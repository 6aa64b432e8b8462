"""Beginning a cache with the files of another one.

ttnn takes a tensor file by name, dtype and layout alone (tt-metal#45400, PR#26779), so a file may only be handed on to
a cache in which a file of that name would have the same bytes. Two caches with different keys are such only where they
differ in nothing but variables of which the catalogue says that they go into the files' names.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.lock import KeyLock
from ttstack.cache.manifest import scan
from ttstack.cache.marker import read_marker
from ttstack.cache.seed_record import SEEDS, Listing, Method, Row, read_listing, sample, sampled, write_record
from ttstack.cache.survey import survey
from ttstack.cache.transfer import Transfer, give
from ttstack.cache.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from ttstack.cache.types import FileEntry, Marker

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Choice:
    """The cache to begin with, and why it is this one or none."""

    key: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What was done. ``method`` is how most files were put; ``counts`` says how many by each."""

    source: str
    method: Method
    files: int
    bytes: int
    counts: Mapping[Method, int]


def choose(root: Path, inputs: Mapping[str, object], *, in_name: Collection[str], checkpoint: str) -> Choice:
    """Find the complete cache whose files this one may begin with.

    ``inputs``: what goes into the key that is to be built; ``in_name``: the model's ``weights_env_in_name``;
    ``checkpoint``: its signature, "" for a model without a path. Of several the one that differs least, then the
    newest. A cache that does not verify is never one. Raises CacheError when the root cannot be listed.
    """
    if not in_name:
        return Choice(None, "the catalogue names no variable of this model that goes into the files' names")
    found: list[tuple[int, str, Path]] = []
    near = "there is no complete cache of this model"
    for directory in sorted(survey(root), key=lambda entry: entry.marker.completed if entry.marker else ""):
        marker = directory.marker
        if directory.standing != "complete" or marker is None or marker.kind != "tensors":
            continue
        if marker.inputs.get("model") != inputs.get("model"):
            continue
        against = unlike(inputs, marker, in_name, checkpoint)
        if against:
            near = f"{marker.key} differs in {against}"
        else:
            found.append((len(_env_differences(inputs, marker.inputs)), marker.completed, directory.path))
    for _, _, path in sorted(sorted(found, key=lambda entry: entry[1], reverse=True), key=lambda entry: entry[0]):
        faults = _faults(path)
        if not faults:
            return Choice(path.name, "it differs only in variables that go into the files' names")
        near = f"{path.name} is not whole: {faults}"
    return Choice(None, near)


def unlike(inputs: Mapping[str, object], marker: Marker, in_name: Collection[str], checkpoint: str) -> str:
    """Say what makes a cache's files unfit for these inputs; "" when nothing does, or when it is the same cache.

    Whatever this version of ttx does not know of an input counts as a difference.
    """
    theirs = marker.inputs
    for name in sorted({*inputs, *theirs} - {"env"}):
        if name not in inputs or name not in theirs or inputs[name] != theirs[name]:
            return name
    others = sorted(_env_differences(inputs, theirs) - set(in_name))
    if others:
        return f"the variable {others[0]}"
    return "" if marker.checkpoint == checkpoint else "the checkpoint's files"


def _env_differences(ours: Mapping[str, object], theirs: Mapping[str, object]) -> set[str]:
    left, right = ours.get("env"), theirs.get("env")
    if not isinstance(left, Mapping) or not isinstance(right, Mapping):
        return {"env"}
    return {name for name in {*left, *right} if left.get(name) != right.get(name)}


def _faults(folder: Path) -> str:
    try:
        faults = verify(folder)
    except CacheError as error:
        return error.message
    return f"{faults[0].path}: {faults[0].text}" if faults else ""


def seed(
    source: Path, target: Path, *, by_rename: bool, progress: Callable[[int, int], None] | None = None
) -> SeedResult:
    """Put the files that a complete cache's manifest names into a new one, and note in it what was put.

    ``target`` has a marker that says building, and holds no file yet: whatever ends this early leaves a directory
    which never counts as a cache. ``by_rename``: the pin's engine writes beside and renames. ``progress`` is given
    bytes done and in all. The source is locked for reading meanwhile.

    Raises CacheRefusedError when the source is being built or is not complete; CacheError when it is not what its
    manifest says, and when files cannot be put (no room, no right): then all that was put is taken away again.
    """
    mine = read_marker(target)
    if mine is None or mine.state != "building" or scan(target):
        raise CacheError(f"{target} is no empty cache whose building has begun", hint="seeding only ever begins one")
    lock = KeyLock(source.parent, source.name).shared()
    if lock is None:
        raise CacheRefusedError(f"cache {source.name} is being built, so nothing can be taken from it")
    try:
        with _no_collector():
            marker, listing = read_marker(source), read_listing(source)
            if marker is None or marker.state != "complete" or listing is None:
                raise CacheRefusedError(f"cache {source.name} is not complete, so nothing can be taken from it")
            return _Seeding(source, target, listing, progress).run(by_rename=by_rename)
    except OSError as error:
        raise CacheError(
            f"cannot seed {target.name} from {source.name}: {error.strerror}", reason="seed_failed"
        ) from error
    finally:
        os.close(lock)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Pause Python's garbage collector, which would walk tens of thousands of rows again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Seeding:
    """One call of ``seed``."""

    def __init__(
        self, source: Path, target: Path, listing: Listing, progress: Callable[[int, int], None] | None
    ) -> None:
        self.listing, files = listing, listing.files
        self.source, self.target, self.progress = source, target, progress
        self.total = sum(entry.size for entry in files)
        self.done = 0
        self.places = _by_folder(files)
        some = _by_folder(files[:: sampled(len(files))])
        self.sampled = {folder: [name for name, _ in entries] for folder, entries in some.items()}
        self.rows: list[Row] = []
        self.samples: dict[str, str] = {}
        self.folders: list[str] = []

    def run(self, *, by_rename: bool) -> SeedResult:
        try:
            transfer = Transfer(by_rename=by_rename, advance=self._advance)
            for folder, files in self.places.items():
                self._folder(folder, files, transfer)
            write_record(self.target, self.source.name, self.listing, self.rows, self.samples)
        except BaseException:
            self._undo()
            raise
        self.done = self.total
        self._report()
        counts: Counter[Method] = Counter(row.method for row in self.rows)
        method = max(counts, key=lambda name: counts[name]) if counts else "copy"
        return SeedResult(self.source.name, method, len(self.rows), self.total, dict(counts))

    def _folder(self, folder: str, files: list[tuple[str, FileEntry]], transfer: Transfer) -> None:
        with _opened(self.source, self.target, folder, self.folders) as (origin, place):
            transfer.put_all(origin, place, files, self.rows)
            for name in self.sampled.get(folder, ()):
                self.samples[f"{folder}/{name}" if folder else name] = sample(place, name)

    def _advance(self, size: int) -> None:
        self.done += size
        self._report()

    def _report(self) -> None:
        if self.progress:
            self.progress(self.done, self.total)

    def _undo(self) -> None:
        with suppress(OSError):
            (self.target / SEEDS).unlink()
        for row in self.rows:
            with suppress(OSError):
                (self.target / row.path).unlink()
        for folder in reversed(self.folders):
            with suppress(OSError):
                (self.target / folder).rmdir()


def _by_folder(files: Iterable[FileEntry]) -> dict[str, list[tuple[str, FileEntry]]]:
    """Sort files by their folder, each with its name there."""
    found: dict[str, list[tuple[str, FileEntry]]] = {}
    for entry in files:
        folder, _, name = entry.path.rpartition("/")
        found.setdefault(folder, []).append((name, entry))
    return found


@contextmanager
def _opened(source: Path, target: Path, folder: str, made: list[str]) -> Iterator[tuple[int, int]]:
    """Open a folder of the source and its twin in the target, which is made. No part of either may be a link."""
    with ExitStack() as stack:
        origin = _open(stack, str(source), None)
        place = _open(stack, str(target), None)
        path = ""
        for part in folder.split("/") if folder else []:
            path = f"{path}/{part}" if path else part
            origin = _open(stack, part, origin)
            try:
                os.mkdir(part, 0o700, dir_fd=place)
            except FileExistsError:
                place = _open(stack, part, place)
            else:
                made.append(path)
                place = _open(stack, part, place)
                give(place, os.fstat(origin))
        yield origin, place


def _open(stack: ExitStack, path: str, inside: int | None) -> int:
    handle = os.open(path, _FOLDER, dir_fd=inside)
    stack.callback(os.close, handle)
    return handle
