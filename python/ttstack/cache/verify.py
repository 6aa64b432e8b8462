"""Whether a cache's files are what they were, as far as that can be seen: names, sizes, headers; in full, each byte."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ttstack.cache.errors import CacheError
from ttstack.cache.hashes import read_hashes
from ttstack.cache.headers import judge
from ttstack.cache.manifest import read_manifest, walk
from ttstack.cache.marker import read_marker
from ttstack.cache.types import MANIFEST, FileEntry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ttstack.cache.headers import Judged

FaultKind = Literal["missing", "size", "header", "empty", "leftover", "odd", "content", "manifest"]

_CAREFULLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CHUNK = 1 << 20
# ttnn 0.81.1 writes NAME.tmp.PID.N and renames it, the simulated engine NAME.tmp.PID.
_TEMPORARY = re.compile(r".*\.tmp(\.[^/]*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one file. ``listed``: the manifest has it, or there is no manifest yet.

    One that is not listed came after the cache was completed; an engine that runs may be writing it.
    """

    path: str  # from the cache's directory
    text: str
    kind: FaultKind
    listed: bool = True


@dataclass(slots=True)
class Report:
    """What was found. ``unknown``: files whose content nobody here can judge, so that only their size was looked at."""

    faults: list[Fault] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    unknown: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)  # files that came after the cache was completed
    hashes: dict[FileEntry, str] = field(default_factory=dict)  # sha256 of each, when every byte was read
    compared: int = 0  # how many of them were hashed before


def verify(
    folder: Path, *, full: bool = False, progress: Callable[[int, int], None] | None = None
) -> tuple[Fault, ...]:
    """Say what is wrong with a cache. See ``examine``."""
    return tuple(examine(folder, full=full, progress=progress).faults)


def examine(folder: Path, *, full: bool = False, progress: Callable[[int, int], None] | None = None) -> Report:
    """Look at each file of a cache, against its manifest when it has one.

    ``full``: read every byte, and compare with what the file says of itself and with the hashes of an earlier time.
    ``progress`` is told the bytes that were read and that there are. A file that cannot be read is no fault of the
    cache: then nothing is known, and CacheError is raised.
    """
    report = Report()
    listed = _manifest(folder, report)
    expected, has_manifest = listed or {}, listed is not None
    there = dict(walk(folder))
    for path in sorted(expected.keys() - there.keys()):
        report.faults.append(Fault(path, "it is missing", "missing"))
    look = _Look(folder, report, expected, has_manifest=has_manifest)
    if full:
        total = sum(seen.st_size for seen in there.values() if stat.S_ISREG(seen.st_mode))
        look.reader = _Reader(read_hashes(folder), progress, total)
    for path in sorted(there):
        look.at(path, there[path])
    return report


def _manifest(folder: Path, report: Report) -> dict[str, FileEntry] | None:
    """Read what there should be; what is wrong with the manifest itself is a fault, unless it cannot be read."""
    marker = read_marker(folder)
    try:
        files = read_manifest(folder)
    except CacheError as error:
        if isinstance(error.__cause__, OSError):
            raise
        report.faults.append(Fault(MANIFEST, error.message, "manifest"))
        return None
    complete = marker is not None and marker.state == "complete"
    if files is None:
        if complete:
            report.faults.append(Fault(MANIFEST, "it is missing", "manifest"))
        return None
    told = (marker.files, marker.bytes) if marker is not None and complete else None
    if told is not None and told != (len(files), sum(file.size for file in files)):
        report.faults.append(Fault(MANIFEST, f"the marker tells of {told[0]} files and {told[1]} bytes", "manifest"))
    return {file.path: file for file in files}


@dataclass(slots=True)
class _Reader:
    """Reads every byte."""

    known: dict[str, tuple[FileEntry, str]]
    progress: Callable[[int, int], None] | None
    total: int
    done: int = 0

    def digest(self, handle: int, payload: int | None) -> tuple[str, bytes]:
        """Hash a whole file, and its payload from that offset on."""
        whole, inner = hashlib.sha256(), hashlib.sha256()
        at = 0
        while chunk := os.pread(handle, _CHUNK, at):
            whole.update(chunk)
            if payload is not None:
                inner.update(chunk[max(0, payload - at) :])
            at += len(chunk)
            self.done += len(chunk)
            if self.progress is not None:
                self.progress(self.done, self.total)
        return whole.hexdigest(), inner.digest()


@dataclass(slots=True)
class _Look:
    folder: Path
    report: Report
    expected: dict[str, FileEntry]
    has_manifest: bool
    reader: _Reader | None = None

    def at(self, path: str, seen: os.stat_result) -> None:
        """Look at one file."""
        if path not in self.expected and self.has_manifest:
            self.report.later.append(path)
        if not stat.S_ISREG(seen.st_mode):
            what = "a link" if stat.S_ISLNK(seen.st_mode) else "neither a file nor a folder"
            self._fault(path, f"it is {what}", "odd")
            return
        self.report.files += 1
        self.report.bytes += seen.st_size
        wanted = self.expected.get(path)
        if _TEMPORARY.fullmatch(path):
            self._fault(path, "it is a temporary file that was left over", "leftover")
        elif wanted is not None and wanted.size != seen.st_size:
            self._fault(path, f"it has {seen.st_size} bytes, and had {wanted.size}", "size")
        elif not seen.st_size:
            self._fault(path, "it is empty", "empty")
        else:
            self._open(path)

    def _fault(self, path: str, text: str, kind: FaultKind) -> None:
        self.report.faults.append(Fault(path, text, kind, path in self.expected or not self.has_manifest))

    def _open(self, path: str) -> None:
        try:
            handle = os.open(self.folder / path, _CAREFULLY)
        except FileNotFoundError:
            self._fault(path, "it went away while it was looked at", "missing")
            return
        except OSError as error:
            raise CacheError(f"cannot read {self.folder / path}: {error.strerror}") from error
        try:
            self._read(path, handle)
        except OSError as error:
            raise CacheError(f"cannot read {self.folder / path}: {error.strerror}") from error
        finally:
            os.close(handle)

    def _read(self, path: str, handle: int) -> None:
        seen = os.fstat(handle)
        judged = judge(handle, path, seen.st_size)
        if judged.fault:
            self._fault(path, judged.fault, "header")
        elif not judged.known:
            self.report.unknown.append(path)
        if self.reader is not None and not judged.fault:
            self._compare(self.reader, FileEntry(path, seen.st_size, seen.st_mtime_ns), handle, judged)

    def _compare(self, reader: _Reader, entry: FileEntry, handle: int, judged: Judged) -> None:
        start, wanted = judged.payload or (None, b"")
        digest, payload = reader.digest(handle, start)
        self.report.hashes[entry] = digest
        if start is not None and payload != wanted:
            self._fault(entry.path, "its data is not what its header says", "content")
            return
        before = reader.known.get(entry.path)
        if before is None:
            return
        self.report.compared += 1
        if before[1] != digest:
            how = "without a trace" if before[0] == entry else "and rewritten"
            self._fault(entry.path, f"its content was changed, {how}, since it was hashed", "content")
