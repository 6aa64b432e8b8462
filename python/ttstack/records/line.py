"""One line of records: what it is at a glance, and all of it when asked for.

A line whose sum holds was written by a ttx that checked it against the schema, and is as it was: of thousands of them a
reader parses only those that it looks at closely. Any other line is parsed and checked before it counts.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ttstack.records.errors import RecordsError
from ttstack.records.schema import violation
from ttstack.records.seal import holds
from ttstack.records.types import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

FaultKind = Literal["torn", "invalid", "newer", "duplicate", "orphan"]
"""torn: not whole; invalid: not of the schema; newer: of a later schema; duplicate: a second opening or closing of one
run, of which the first counts; orphan: a closing whose opening is not there."""

_GLANCE = re.compile(
    rb'\{"schema":1,"kind":"(open|close)","id":"[0-9a-f]{32}",'
    rb'"run":"([A-Za-z0-9][A-Za-z0-9._-]{0,99})","time":"([0-9T:.Z-]{24})",'
    rb'(?:"verb":"[ !#-\[\]-~]*","arm"|"outcome"):"([ !#-\[\]-~]*)",'
)
"""The beginning of a line as ``ttstack.records.build`` orders it."""
_KINDS: dict[bytes, Literal["open", "close"]] = {b"open": "open", b"close": "close"}


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that is not used: its number (1-based), what is wrong, and the run where it is known."""

    line: int
    kind: FaultKind
    message: str
    run: str = ""


class Source:
    """An open file of records that lines are read from again: thousands of them need not stay in memory."""

    def __init__(self, handle: int) -> None:
        self._handle = os.dup(handle)

    def __del__(self) -> None:
        os.close(self._handle)

    def read(self, offset: int, size: int) -> bytes:
        """Read so many bytes. Raises RecordsError."""
        try:
            return os.pread(self._handle, size, offset)
        except OSError as error:
            raise RecordsError(f"cannot read the records again: {error.strerror}", reason="records_read") from error


class Place(NamedTuple):
    """Where a line lies in a file."""

    source: Source
    offset: int
    size: int


@dataclass(slots=True)
class Line:
    """A line that counts. ``what``: the arm of an opening, the outcome of a closing."""

    number: int
    origin: bytes | Place
    kind: Literal["open", "close"]
    run: str
    time: str
    what: str
    changed: bool = False  # it has a sum that does not hold: somebody changed it after it was written
    _table: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """The line's own id. Raises RecordsError; see ``fault``."""
        return str(self.table["id"])

    @property
    def raw(self) -> bytes:
        """The line as it lies in the file. Raises RecordsError when it cannot be read again."""
        if isinstance(self.origin, bytes):
            return self.origin
        return self.origin.source.read(self.origin.offset, self.origin.size)

    @property
    def table(self) -> Mapping[str, Any]:
        """The whole line, with fields that this version does not know. Raises RecordsError; see ``fault``."""
        found = self.fault()
        if found is not None:
            raise RecordsError(f"line {found.line} of the records is {found.kind}: {found.message}")
        return cast("Mapping[str, Any]", self._table)

    def fault(self) -> Fault | None:
        """Say what is wrong with the line after all, when it has a sum that holds and is not of the schema."""
        if self._table is None:
            table = decode(self.number, self.raw)
            if isinstance(table, Fault):
                return table
            self._table = table
        return None


def read_line(number: int, raw: bytes, source: Source | None = None, offset: int = 0) -> Line | Fault:
    """Look at a line. One that lies at ``offset`` in a source is not kept in memory."""
    origin = Place(source, offset, len(raw)) if source else raw
    if holds(raw):
        found = _GLANCE.match(raw)
        if found is not None:
            kind, run, time, what = found.groups()
            return Line(number, origin, _KINDS[kind], run.decode(), time.decode(), what.decode())
    table = decode(number, raw)
    if isinstance(table, Fault):
        return table
    what = str(table["arm" if table["kind"] == "open" else "outcome"])
    changed = "sum" in table and not holds(raw)
    return Line(number, origin, table["kind"], table["run"], table["time"], what, changed, table)


def decode(number: int, raw: bytes) -> Mapping[str, Any] | Fault:
    """Parse a line and hold it against the schema. A whole line that only lacks its newline is whole."""
    line, run = None, ""
    wrong: tuple[FaultKind, str] | None
    try:
        line = _DECODER.decode(raw.decode("utf-8"))
    except ValueError:
        wrong = "torn", f"not whole: {len(raw)} bytes that are not JSON"
    except RecursionError:
        wrong = "invalid", "nested too deeply"
    else:
        run = str(line.get("run", "")) if isinstance(line, dict) else ""
        wrong = _judge(line, raw, sealed=holds(raw))
    return Fault(number, *wrong, run) if wrong else cast("Mapping[str, Any]", line)


def _judge(line: object, raw: bytes, *, sealed: bool) -> tuple[FaultKind, str] | None:
    if not isinstance(line, dict):
        return "invalid", f"a {type(line).__name__}, not an object"
    if (not sealed or b"\\u" in raw) and not _can_be_written(line):
        return "invalid", "holds half a character (a lone surrogate), or a number that is too large"
    schema = line.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        return "newer", f"schema {schema}, and this ttx reads schema {SCHEMA}: use a newer ttx"
    wrong = violation(line, strict=False)
    return ("invalid", wrong) if wrong else None


def _can_be_written(line: object) -> bool:
    """Whether the line can be printed again: JSON can name halves of characters and numbers that nothing can hold."""
    try:
        json.dumps(line, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except ValueError:  # UnicodeEncodeError is one
        return False
    return True
