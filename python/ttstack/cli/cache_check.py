"""``ttx cache verify``: looks, says what it found, and marks as broken what no start may use again."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ttstack.cache import lock
from ttstack.cache.errors import CacheError, CacheRefusedError, RegistryError
from ttstack.cache.hashes import write_hashes
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.registry import locked
from ttstack.cache.verify import Report, examine
from ttstack.cli.human import size
from ttstack.errors import UsageError
from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ttstack.cache.types import Directory
    from ttstack.cli.cache_view import Seen

_SHOWN = 20  # faults
_SETTLED = {"broken", "abandoned"}  # no start uses it


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one cache. ``unread``: why it could not be looked at; ``marked``: what became of its marker."""

    seen: Seen
    report: Report
    unread: str = ""
    marked: str = ""
    full: bool = False

    @property
    def whole(self) -> bool:
        """Whether it may be used, as far as was looked."""
        return not (self.report.faults or self.unread or self.seen.directory.standing in _SETTLED)

    def table(self) -> dict[str, Any]:
        """Say it for programs."""
        found = self.report
        return {
            "name": self.seen.name,
            "simulated": self.seen.places.simulated,
            "standing": self.seen.directory.standing,
            "whole": self.whole,
            "unread": self.unread,
            "files": found.files,
            "bytes": found.bytes,
            "faults": [
                {"path": one.path, "kind": one.kind, "text": one.text, "listed": one.listed} for one in found.faults
            ],
            "only_size_looked_at": found.unknown,
            "later": found.later,
            "hashed": len(found.hashes),
            "compared_with_earlier": found.compared,
            "marked": self.marked,
        }


def told(checked: Checked) -> Iterator[str]:
    """Say it for people."""
    return map(printable, _told(checked))


def _told(checked: Checked) -> Iterator[str]:
    found, name = checked.report, checked.seen.name
    directory = checked.seen.directory
    if checked.unread:
        yield f"{name}  not known: {checked.unread}"
        return
    verdict = "whole" if not found.faults else f"{len(found.faults)} fault(s)"
    state = "" if directory.standing == "complete" else f", {directory.standing}"
    yield f"{name}  {verdict}{state}: {found.files} files, {size(found.bytes)}"
    for fault in found.faults[:_SHOWN]:
        yield f"  {fault.path}: {fault.text}"
    if len(found.faults) > _SHOWN:
        yield f"  and {len(found.faults) - _SHOWN} more"
    if found.unknown:
        yield f"  of {len(found.unknown)} file(s) only the size was looked at, such as {found.unknown[0]}"
    if found.later:
        yield f"  {len(found.later)} file(s) came after it was completed, such as {found.later[0]}"
    if checked.full and not found.faults:
        first = len(found.hashes) - found.compared
        parts = [f"{found.compared} file(s) as they were the last time"] if found.compared or not first else []
        parts += [f"{first} file(s) hashed for the first time"] if first else []
        yield f"  {', '.join(parts)}"
    if checked.marked:
        yield f"  {checked.marked}"


def check(seen: Seen, *, full: bool) -> Checked:
    """Look at one cache. Raises UsageError for what has no content to verify, CacheRefusedError while it is built."""
    directory = seen.directory
    if directory.standing in {"not ours", "trash"} or (directory.marker is not None and directory.marker.kind == "jit"):
        what = (
            "a kernel cache, which engines change as they run" if directory.marker is not None else directory.standing
        )
        raise UsageError(f"{seen.name} is {what}: there is nothing to compare it with", hint="see: ttx cache ls")
    if directory.standing == "building":
        raise CacheRefusedError(f"cache {seen.name} is being built", hint=f"see: ttx cache show {seen.name}")
    if directory.standing == "unreadable":
        return Checked(seen, Report(), unread=directory.text)
    try:
        report = examine(directory.path, full=full, progress=_progress(seen.name) if full else None)
    except CacheError as error:
        return Checked(seen, Report(), unread=error.message)
    marked = ""
    if directory.standing == "complete":
        report = _settled(seen, report, full=full)
        marked = _mark(seen, report) if report.faults else _keep(directory, report) if full else ""
    return Checked(seen, report, marked=marked, full=full)


def _settled(seen: Seen, report: Report, *, full: bool) -> Report:
    """Leave out what an engine may be writing just now, or was as it was looked at: files that came later."""
    if all(fault.listed for fault in report.faults):
        return report
    try:
        busy = lock.state(seen.places.cache, seen.directory.key) != "free"
        again = [] if busy else examine(seen.directory.path, full=full).faults
    except CacheError:
        again = []
    return replace(report, faults=[fault for fault in report.faults if fault.listed or fault in again])


def _mark(seen: Seen, report: Report) -> str:
    """Mark it as broken: an engine that loads what is there would serve wrong text, or none."""
    folder = seen.directory.path
    fault = next((fault for fault in report.faults if fault.listed or fault.kind != "leftover"), None)
    if fault is None:
        return "it stays complete, as no engine loads a temporary file: remove that by hand"
    try:
        with locked(seen.places.cache):
            marker = read_marker(folder)
            if marker is None or marker != seen.directory.marker:
                return "it was changed meanwhile, and is not marked"
            write_marker(folder, replace(marker, state="broken", reason=f"{fault.path}: {fault.text}"))
    except (CacheError, CacheRefusedError, RegistryError) as error:
        return f"it could not be marked as broken: {error.message}"
    return "it is marked as broken: the next start builds it anew"


def _keep(directory: Directory, report: Report) -> str:
    """Write down the hashes, for the next time."""
    try:
        write_hashes(directory.path, report.hashes)
    except CacheError as error:
        return f"the hashes could not be kept for the next time: {error.message}"
    return ""


def _progress(name: str) -> Callable[[int, int], None] | None:
    """Tell a person at a terminal how far it is."""
    if not sys.stderr.isatty():
        return None
    shown = -1

    def tell(done: int, total: int) -> None:
        nonlocal shown
        percent = done * 100 // total if total else 100
        if percent != shown:
            shown = percent
            print(
                f"\r{name}  {percent} % of {size(total)}", end="" if done < total else "\n", file=sys.stderr, flush=True
            )

    return tell
