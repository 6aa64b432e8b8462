"""Bring records of several files together: each line once, none lost, none that contradicts another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.records.line import Fault, Line, read_line
from ttstack.records.log import lines_of, source_of
from ttstack.records.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import BinaryIO

Half = tuple[str, str]
"""A run and which of its two lines."""


@dataclass(frozen=True, slots=True)
class Left:
    """A line that was not taken over. ``kind``: that of a fault, or ``conflict``."""

    file: Path
    line: int  # 1-based
    run: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did, in lines."""

    added: int
    known: int  # there already
    left: tuple[Left, ...]


@dataclass(slots=True)
class _Merge:
    halves: dict[Half, tuple[Path, Line]] = field(default_factory=dict)
    ids: dict[str, Half] = field(default_factory=dict)
    added: list[tuple[Path, Line]] = field(default_factory=list)
    known: int = 0
    left: list[Left] = field(default_factory=list)


def merge(target: Path, sources: Sequence[Path]) -> Merged:
    """Add the lines of other files to ``target``, as they are and in their order.

    A line that is there already counts once. When a file has another line for the same half of a run, or for the same
    id, all of that run is left out: its opening must not get another's close. Left out as well: what is torn, is not
    of the schema or of a later one, and closings without an opening. Raises RecordsError; what was written by then is
    whole, and to merge again goes on from there.
    """
    read = [(path, _read(path)) for path in sources]  # before the lock: one of them may be the target itself
    work = _Merge()

    def choose(stream: BinaryIO, size: int) -> Iterable[bytes]:
        source = source_of(stream)
        for number, offset, raw in lines_of(stream, size):
            line = read_line(number, raw, source, offset)
            if isinstance(line, Line):
                work.halves.setdefault((line.run, line.kind), (target, line))
                work.ids.setdefault(line.id, (line.run, line.kind))
        for path, lines in read:
            _take(work, path, lines)
        _leave_orphans(work)
        return [line.raw.rstrip(b"\r\n") + b"\n" for _, line in work.added]

    Store(target).extend(choose)
    return Merged(len(work.added), work.known, tuple(work.left))


def _read(path: Path) -> list[Line | Fault]:
    with Store(path).stream() as (stream, size):
        source = source_of(stream)
        lines = [read_line(number, raw, source, offset) for number, offset, raw in lines_of(stream, size)]
    return [line if isinstance(line, Fault) else line.fault() or line for line in lines]


def _take(work: _Merge, path: Path, lines: list[Line | Fault]) -> None:
    fresh: dict[Half, Line] = {}
    ids: dict[str, Half] = {}
    bad: set[str] = set()
    for line in lines:
        if isinstance(line, Fault):
            work.left.append(Left(path, line.line, line.run, line.kind, line.message))
            continue
        half: Half = (line.run, line.kind)
        where, other = work.halves.get(half) or (path, fresh.get(half))
        owner = work.ids.get(line.id) or ids.get(line.id) or half
        if other is not None and _same(other, line):
            work.known += 1
        elif other is not None or owner != half:
            told = f"line {other.number} of {where} says otherwise" if other else f"its id is that of run {owner[0]}"
            work.left.append(Left(path, line.number, line.run, "conflict", told))
            bad.add(line.run)
        else:
            fresh[half], ids[line.id] = line, half
    for half, line in fresh.items():
        if line.run in bad:
            told = "the other line of this run is in conflict"
            work.left.append(Left(path, line.number, line.run, "conflict", told))
        else:
            work.halves[half], work.ids[line.id] = (path, line), half
            work.added.append((path, line))


def _leave_orphans(work: _Merge) -> None:
    lost = [(path, line) for path, line in work.added if (line.run, "open") not in work.halves]
    work.added = [(path, line) for path, line in work.added if (line.run, "open") in work.halves]
    told = "no file has the opening line of this run"
    work.left.extend(Left(path, line.number, line.run, "orphan", told) for path, line in lost)


def _same(first: Line, second: Line) -> bool:
    """Whether two lines say the same; another program may have spelled one of them anew."""
    if first.raw.rstrip(b"\r\n") == second.raw.rstrip(b"\r\n"):
        return True
    return _meaning(first) == _meaning(second)


def _meaning(line: Line) -> dict[str, object]:
    return {name: value for name, value in line.table.items() if name != "sum"}
