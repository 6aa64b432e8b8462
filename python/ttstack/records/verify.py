"""Hold records against what can be computed again from them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import isclose
from typing import TYPE_CHECKING, Any

from ttstack.records import parse
from ttstack.records.again import UnknownFormError, cache_key_of, digests_of
from ttstack.records.line import Fault, Line, read_line
from ttstack.records.log import lines_of
from ttstack.records.quotable import reasons_against
from ttstack.records.statistics import summarise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from ttstack.records.types import Cell, Closed, Stat

RULES: dict[str, str] = {
    "whole": "the line is whole, is JSON, and is of this schema",
    "sum": "the line is as it was written: its sum holds",
    "once": "a run has one opening and one closing line, and no two lines have one id",
    "opened": "a closing line has an opening one before it",
    "arm_digest": "the digest of the arm is that of the arm in the line",
    "pin_digest": "the digest of the pin is that of the pin in the line",
    "model_digest": "the digest of the model is that of the model in the line",
    "cache_key": "the key of the tensor cache is that of its inputs",
    "verdict": "the verdict on the identity follows from its checks",
    "ok": "whether the suite went well follows from its checks",
    "stats": "what is said of a cell's values follows from them",
    "voids": "no more requests are void than were sent",
    "quotable": "whether the numbers may be quoted, and why not, follows from the line",
}
"""Name -> what must hold. ``ttx records verify`` names the rule that a line breaks."""

_CLOSE = 1e-9  # relative: releases of Python round the last digits of a standard deviation in their own ways


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that does not hold. ``rule`` is a name of ``RULES``."""

    line: int  # 1-based
    run: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at and what did not hold. ``unknown``: lines whose digests this version cannot compute."""

    lines: int
    findings: tuple[Finding, ...]
    unknown: tuple[Finding, ...]
    unsealed: int  # lines without a sum, of before there were any


def verify_stream(stream: BinaryIO, size: int) -> Verified:
    """Verify the lines that begin in the first ``size`` bytes of a stream of records."""
    found: list[Finding] = []
    unknown: list[Finding] = []
    seen = _Seen()
    count = unsealed = 0
    for number, _, raw in lines_of(stream, size):
        count += 1
        line = read_line(number, raw)
        fault = line if isinstance(line, Fault) else line.fault()
        if fault is not None:
            found.append(Finding(number, fault.run, "whole", f"{fault.kind}: {fault.message}"))
            continue
        if not isinstance(line, Line):
            continue
        unsealed += "sum" not in line.table
        digests = seen.digests(line)
        if isinstance(digests, str):
            unknown.append(Finding(number, line.run, "arm_digest", digests))
            digests = {}
        against = (*seen.against(line), *_against(line, digests))
        found.extend(Finding(number, line.run, rule, text) for rule, text in against)
    found.extend(Finding(number, run, "opened", "no line opens this run") for run, number in seen.orphans.items())
    return Verified(count, tuple(sorted(found, key=lambda finding: finding.line)), tuple(unknown), unsealed)


class _Seen:
    """What the lines so far held."""

    def __init__(self) -> None:
        self.halves: dict[tuple[str, str], int] = {}
        self.ids: dict[str, int] = {}
        self.orphans: dict[str, int] = {}
        self._digests: dict[str, dict[str, str] | str] = {}  # of few arms there are many runs

    def against(self, line: Line) -> Iterator[tuple[str, str]]:
        half = (line.run, line.kind)
        first = self.halves.setdefault(half, line.number)
        if first != line.number:
            yield "once", f"a second {line.kind} line of this run; the first is line {first}"
        first = self.ids.setdefault(line.id, line.number)
        if first != line.number:
            yield "once", f"the id {line.id} is that of line {first}, too"
        if line.kind == "close" and (line.run, "open") not in self.halves:
            self.orphans.setdefault(line.run, line.number)

    def digests(self, line: Line) -> dict[str, str] | str:
        """Compute the digests of what was asked; say why not, where this version cannot. A closing line has none."""
        if line.kind != "open":
            return {}
        asked = line.table["asked"]
        key = json.dumps([asked["arm"], asked["pin"], asked["model"]])
        if key not in self._digests:
            try:
                self._digests[key] = digests_of(asked)
            except UnknownFormError as error:
                self._digests[key] = f"this version cannot compute its digests: {error}"
        return self._digests[key]


def _against(line: Line, digests: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if line.changed:
        yield "sum", "the line was changed after it was written"
    if line.kind == "open":
        yield from _against_asked(line.table["asked"], digests)
    else:
        yield from _against_closed(line.table, parse.closed(line.table))


def _against_asked(asked: Mapping[str, Any], digests: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, digest in digests.items():
        if asked[name] != digest:
            yield name, f"it says {asked[name][:16]}, and what it holds makes {digest[:16]}"
    cache = asked["cache"]
    if cache is not None and cache["key"] != cache_key_of(cache["inputs"]):
        yield "cache_key", f"it says {cache['key']}, and its inputs make {cache_key_of(cache['inputs'])}"


def _against_closed(table: Mapping[str, Any], closed: Closed) -> Iterator[tuple[str, str]]:
    identity, measured = closed.identity, closed.measured
    if identity is not None and table["identity"]["verdict"] != identity.verdict:
        yield "verdict", f"it says {table['identity']['verdict']}, and its checks make {identity.verdict}"
    if measured is not None:
        if table["measured"]["ok"] != measured.ok:
            yield "ok", f"it says {_yes(table['measured']['ok'])}, and its checks make {_yes(measured.ok)}"
        if measured.void > measured.requests:
            yield "voids", f"{measured.void} of {measured.requests} requests are void"
        for cell in measured.cells:
            yield from _against_cell(cell)
    against = reasons_against(closed.outcome, identity, measured)
    if closed.quotable != (not against):
        yield "quotable", f"it says {_yes(closed.quotable)}, and {'; '.join(against) or 'nothing speaks against it'}"
    elif closed.quotable_reasons != against:
        yield "quotable", f"it says {'; '.join(closed.quotable_reasons)}, and the rule says {'; '.join(against)}"


def _against_cell(cell: Cell) -> Iterator[tuple[str, str]]:
    void = sum(cell.voids.values())
    if void > cell.requests:
        yield "voids", f"cell {cell.name}: {void} of {cell.requests} requests are void"
    for name in sorted(cell.values.keys() | cell.stats.keys()):
        values, said = cell.values.get(name, ()), cell.stats.get(name)
        made = summarise(values) if values else None
        if not _same(said, made):
            yield "stats", f"cell {cell.name}, {name}: it says {_words(said)}, and its values make {_words(made)}"


def _same(said: Stat | None, made: Stat | None) -> bool:
    if said is None or made is None:
        return said is made
    first, second = asdict(said), asdict(made)
    return _equal(first.pop("percentiles"), second.pop("percentiles")) and _equal(first, second)


def _equal(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> bool:
    if first.keys() != second.keys():
        return False
    pairs = ((first[name], second[name]) for name in first)
    return all(a is b if a is None or b is None else isclose(a, b, rel_tol=_CLOSE, abs_tol=1e-15) for a, b in pairs)


def _words(stat: Stat | None) -> str:
    if stat is None:
        return "nothing"
    shares = "".join(f", {name} {value:.9g}" for name, value in stat.percentiles.items())
    spread = "" if stat.sd is None else f", sd {stat.sd:.9g}"
    return (
        f"n={stat.n}, median {stat.median:.9g}, mean {stat.mean:.9g}{spread}, {stat.low:.9g} to {stat.high:.9g}{shares}"
    )


def _yes(said: bool) -> str:  # noqa: FBT001 - the one thing that it is about
    return "yes" if said else "no"
