"""Reading records: pairs of lines become runs, and what is not a record is counted and named."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any, Literal, cast

from ttstack.records import parse
from ttstack.records.line import Fault, FaultKind, Line, Source, read_line
from ttstack.records.quotable import reasons_against

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from ttstack.records.types import Closed, Opened, Outcome


@dataclass(frozen=True)
class RunRecord:
    """One run: what its lines say, and what follows from them.

    ``id``, ``time``, ``arm`` and ``outcome`` are at hand; everything else is parsed when it is asked for.
    """

    open_line: Line
    close_line: Line | None
    alive: bool  # not closed, and the process that will close it still runs

    @property
    def raw_open(self) -> Mapping[str, Any]:
        """The opening line as read, with fields that this version does not know. Raises RecordsError; see ``fault``."""
        return self.open_line.table

    @property
    def raw_close(self) -> Mapping[str, Any] | None:
        """The closing line as read. Raises RecordsError; see ``fault``."""
        return None if self.close_line is None else self.close_line.table

    def fault(self) -> Fault | None:
        """Look at the lines closely; say what is wrong with one, as a reader that is not thorough has not yet."""
        return self.open_line.fault() or (self.close_line.fault() if self.close_line else None)

    # Made when asked for: a reader of thousands of records looks at few of them closely.
    @cached_property
    def opened(self) -> Opened:
        """The opening line."""
        return parse.opened(self.raw_open)

    @cached_property
    def closed(self) -> Closed | None:
        """The closing line."""
        return None if self.raw_close is None else parse.closed(self.raw_close)

    @property
    def id(self) -> str:
        """The run's id."""
        return self.open_line.run

    @property
    def time(self) -> str:
        """When it was opened: UTC, ISO 8601."""
        return self.open_line.time

    @property
    def arm(self) -> str:
        """The arm's name."""
        return self.open_line.what

    @property
    def outcome(self) -> Outcome | Literal["running"]:
        """As closed; a run without a close is ``aborted`` once its owner is gone."""
        if self.close_line is not None:
            return cast("Outcome", self.close_line.what)
        return "running" if self.alive else "aborted"

    @property
    def not_quotable(self) -> tuple[str, ...]:
        """Why the numbers may not be quoted, by today's rule as well as by that of the time of writing."""
        if self.closed is None:
            return ("the run was never closed",)
        now = reasons_against(self.closed.outcome, self.closed.identity, self.closed.measured)
        then = () if self.closed.quotable else self.closed.quotable_reasons or ("it was written as not quotable",)
        lines = (self.open_line, self.close_line)
        changed = ("a line was changed after it was written",) if any(line and line.changed for line in lines) else ()
        return tuple(dict.fromkeys((*now, *then, *changed)))

    def may_be_quotable(self) -> bool:
        """Say no to most runs that are not quotable, without parsing any."""
        if self.close_line is None:
            return False
        # The last one is the line's own: behind it there is only text, in which quotes have backslashes.
        raw = self.close_line.raw
        return not raw.startswith(b'"quotable":false', max(raw.rfind(b'"quotable":'), 0))

    @property
    def quotable(self) -> bool:
        """Whether the numbers may be quoted."""
        return not self.not_quotable

    @property
    def seconds(self) -> float | None:
        """The sum of all phases, None for a run without a close."""
        return None if self.closed is None else sum(phase.seconds for phase in self.closed.phases)


@dataclass(frozen=True, slots=True)
class Log:
    """All runs, by the time of their opening, and every line that is not part of one."""

    runs: tuple[RunRecord, ...]
    faults: tuple[Fault, ...]

    def count(self, kind: FaultKind) -> int:
        """How many lines had this fault."""
        return sum(fault.kind == kind for fault in self.faults)


def nobody(_opened: Opened) -> bool:
    """For readers that cannot look at processes: whoever would close a run is gone."""
    return False


def read_stream(stream: BinaryIO, size: int, alive: Callable[[Opened], bool], *, thorough: bool = True) -> Log:
    """Read the lines that begin in the first ``size`` bytes of a stream of records.

    Without ``thorough``, lines whose sum holds are not parsed: ``RunRecord.fault`` does it for the runs that matter.
    """
    faults: list[Fault] = []
    halves: dict[str, dict[str, Line]] = {"open": {}, "close": {}}
    source = None if thorough else source_of(stream)
    for number, offset, raw in lines_of(stream, size):
        line = read_line(number, raw, source, offset)
        fault = line if isinstance(line, Fault) else line.fault() if thorough else None
        if fault is not None:
            faults.append(fault)
        elif isinstance(line, Line) and halves[line.kind].setdefault(line.run, line) is not line:
            faults.append(Fault(number, "duplicate", f"a second {line.kind} line of one run", line.run))
    opens, closes = halves["open"], halves["close"]
    runs = []
    for line in opens.values():
        close = closes.pop(line.run, None)
        fault = line.fault() if close is None else None
        if fault is not None:
            faults.append(fault)
            continue
        runs.append(RunRecord(line, close, close is None and alive(parse.opened(line.table))))
    lost = "closes a run whose opening line is not here"
    faults.extend(Fault(line.number, "orphan", lost, line.run) for line in closes.values())
    # Records of several hosts that were merged lie in the order of their files.
    runs.sort(key=lambda run: run.time)
    return Log(tuple(runs), tuple(sorted(faults, key=lambda fault: fault.line)))


def lines_of(stream: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Give the lines that begin in the first ``size`` bytes, but empty ones: number (1-based), offset, bytes."""
    offset = 0
    # Split at newlines only: text inside a record may hold any other line separator.
    for number, raw in enumerate(stream, 1):
        if not raw.isspace():
            yield number, offset, raw
        offset += len(raw)
        if offset >= size:
            return


def source_of(stream: BinaryIO) -> Source | None:
    """Give the file under a stream; None for one in memory."""
    try:
        return Source(stream.fileno())
    except UnsupportedOperation:
        return None
