"""Reading records: pairs of lines become runs, and what is not a record is counted and named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from ttstack.records import parse
from ttstack.records.quotable import reasons_against
from ttstack.records.schema import violation
from ttstack.records.types import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from ttstack.records.types import Closed, Opened, Outcome

FaultKind = Literal["torn", "invalid", "newer", "duplicate", "orphan"]
"""torn: not whole; invalid: not of the schema; newer: of a later schema; duplicate: a second opening or closing of one
run, of which the first counts; orphan: a closing whose opening is not there."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that is not used: its number (1-based), what is wrong, and the run where it is known."""

    line: int
    kind: FaultKind
    message: str
    run: str = ""


@dataclass(frozen=True)
class RunRecord:
    """One run: what its lines say, and what follows from them."""

    raw_open: Mapping[str, Any]  # as read, with fields that this version does not know
    raw_close: Mapping[str, Any] | None
    alive: bool  # not closed, and the process that will close it still runs

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
        return str(self.raw_open["run"])

    @property
    def outcome(self) -> Outcome | Literal["running"]:
        """As closed; a run without a close is ``aborted`` once its owner is gone."""
        if self.closed is not None:
            return self.closed.outcome
        return "running" if self.alive else "aborted"

    @property
    def not_quotable(self) -> tuple[str, ...]:
        """Why the numbers may not be quoted, by today's rule as well as by that of the time of writing."""
        if self.closed is None:
            return ("the run was never closed",)
        now = reasons_against(self.closed.outcome, self.closed.identity, self.closed.measured)
        then = () if self.closed.quotable else self.closed.quotable_reasons or ("it was written as not quotable",)
        return tuple(dict.fromkeys((*now, *then)))

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
    """All runs, in the order of their opening, and every line that is not part of one."""

    runs: tuple[RunRecord, ...]
    faults: tuple[Fault, ...]

    def count(self, kind: FaultKind) -> int:
        """How many lines had this fault."""
        return sum(fault.kind == kind for fault in self.faults)


def nobody(_opened: Opened) -> bool:
    """For readers that cannot look at processes: whoever would close a run is gone."""
    return False


def read_stream(stream: BinaryIO, size: int, alive: Callable[[Opened], bool]) -> Log:
    """Read the lines that begin in the first ``size`` bytes of a stream of records."""
    faults: list[Fault] = []
    opens: dict[str, Mapping[str, Any]] = {}
    closes: dict[str, Mapping[str, Any]] = {}
    where: dict[str, int] = {}
    for number, raw in _lines(stream, size):
        line = _decode(number, raw, faults)
        if line is None:
            continue
        run, half = line["run"], opens if line["kind"] == "open" else closes
        if run in half:
            faults.append(Fault(number, "duplicate", f"a second {line['kind']} line of one run", run))
            continue
        half[run] = line
        where.setdefault(run, number)
    lost = closes.keys() - opens.keys()
    faults.extend(Fault(where[run], "orphan", "closes a run whose opening line is not here", run) for run in lost)
    runs = tuple(
        RunRecord(line, closes.get(run), run not in closes and alive(parse.opened(line))) for run, line in opens.items()
    )
    return Log(runs, tuple(sorted(faults, key=lambda fault: fault.line)))


def _lines(stream: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    # Split at newlines only: text inside a record may hold any other line separator.
    for number, raw in enumerate(stream, 1):
        size -= len(raw)
        if raw.strip():
            yield number, raw
        if size <= 0:
            return


def _decode(number: int, raw: bytes, faults: list[Fault]) -> Mapping[str, Any] | None:
    """Return a line of this schema, else None and a fault. A whole line that only lacks its newline is whole."""
    line, run = None, ""
    wrong: tuple[FaultKind, str] | None
    try:
        line = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except ValueError:
        wrong = "torn", f"not whole: {len(raw)} bytes that are not JSON"
    except RecursionError:
        wrong = "invalid", "nested too deeply"
    else:
        run = str(line.get("run", "")) if isinstance(line, dict) else ""
        wrong = _judge(line, raw)
    if wrong:
        faults.append(Fault(number, *wrong, run))
        return None
    return cast("Mapping[str, Any]", line)


def _judge(line: object, raw: bytes) -> tuple[FaultKind, str] | None:
    if not isinstance(line, dict):
        return "invalid", f"a {type(line).__name__}, not an object"
    if b"\\ud" in raw.lower() and not _is_text(line):
        return "invalid", "holds half a character (a lone surrogate)"
    schema = line.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        return "newer", f"schema {schema}, and this ttx reads schema {SCHEMA}: use a newer ttx"
    wrong = violation(line, strict=False)
    return ("invalid", wrong) if wrong else None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _is_text(line: object) -> bool:
    """Whether the line can be printed: JSON can name halves of characters, UTF-8 cannot hold them."""
    try:
        json.dumps(line, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
