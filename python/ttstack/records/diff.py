"""What differs between two runs: in what was asked, around it, observed and measured."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ttstack.records.log import RunRecord
    from ttstack.records.types import Cell, Json, Measured

_NOT_THERE = "(not there)"
# What is another in every run, and says nothing of it.
_ALWAYS = frozenset({"host.state", "observed.engine_pid", "observed.log", "observed.cache_work"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs. ``path``: the field, its levels joined by dots."""

    path: str
    a: Json
    b: Json


@dataclass(frozen=True, slots=True)
class CellEffect:
    """One kind of values of a cell that both runs have, of one name and one shape.

    ``percent``: how much larger the median of B is than that of A; None where A's is 0, or a cell is void.
    """

    cell: str
    shape: Mapping[str, Json]
    value: str  # ends in its unit
    n: tuple[int, int]
    median: tuple[float, float]
    percent: float | None
    reasons: tuple[str, ...]  # why one of the cells is void


@dataclass(frozen=True, slots=True)
class RunDiff:
    """All that differs. ``only_a`` and ``only_b``: cells that the other run has not."""

    asked: tuple[Difference, ...]
    around: tuple[Difference, ...]  # host and program
    observed: tuple[Difference, ...]
    measured: tuple[Difference, ...]  # checks, settings and answers
    cells: tuple[CellEffect, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def diff(a: RunRecord, b: RunRecord) -> RunDiff:
    """Compare two runs. Raises RecordsError when a line of them turns out to be none."""
    first, second = a.raw_open, b.raw_open
    cells_a, cells_b = _cells(a), _cells(b)
    return RunDiff(
        asked=tuple(_differences("", first["asked"], second["asked"])),
        around=(
            *_differences("host", first["host"], second["host"]),
            *_differences("tool", first["tool"], second["tool"]),
        ),
        observed=tuple(_differences("observed", _half(a, "observed"), _half(b, "observed"))),
        measured=tuple(_differences("", _answers(_measured(a)), _answers(_measured(b)))),
        cells=tuple(
            effect for key, cell in cells_a.items() if key in cells_b for effect in _effects(cell, cells_b[key])
        ),
        only_a=tuple(cell.name for key, cell in cells_a.items() if key not in cells_b),
        only_b=tuple(cell.name for key, cell in cells_b.items() if key not in cells_a),
    )


def _half(run: RunRecord, name: str) -> Any:  # noqa: ANN401 - any part of a line
    return None if run.raw_close is None else run.raw_close[name]


def _measured(run: RunRecord) -> Measured | None:
    return None if run.closed is None else run.closed.measured


def _answers(measured: Measured | None) -> dict[str, Json]:
    if measured is None:
        return {}
    return {
        "suite": measured.suite,
        "checks": {check.name: check.ok for check in measured.checks},
        "settings": measured.settings,
        "outputs": dict(measured.outputs),
        "void": measured.void,
    }


def _differences(path: str, a: Any, b: Any) -> Iterator[Difference]:  # noqa: ANN401 - any part of a line
    if path in _ALWAYS or a == b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for name in (*a, *(name for name in b if name not in a)):
            below = f"{path}.{name}" if path else name
            yield from _differences(below, a.get(name, _NOT_THERE), b.get(name, _NOT_THERE))
    elif _is_list_of_tables(a) and _is_list_of_tables(b) and len(a) == len(b):
        for at, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _differences(f"{path}[{at}]", one, other)
    else:
        yield Difference(path, a, b)


def _is_list_of_tables(value: Any) -> bool:  # noqa: ANN401 - as above
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _cells(run: RunRecord) -> dict[str, Cell]:
    """Give the cells by name and shape, a second of the same kind with its number."""
    measured = _measured(run)
    found: dict[str, Cell] = {}
    for cell in measured.cells if measured else ():
        key = f"{cell.name} {sorted(cell.shape.items(), key=str)}"
        count = sum(other == key or other.startswith(f"{key} #") for other in found)
        found[f"{key} #{count}" if count else key] = cell
    return found


def _effects(a: Cell, b: Cell) -> Iterator[CellEffect]:
    reasons = (*(f"A: {reason}" for reason in a.reasons), *(f"B: {reason}" for reason in b.reasons))
    for name, values in a.values.items():
        others = b.values.get(name, ())
        if not values or not others:
            continue
        first, second = median(values), median(others)
        percent = None if reasons or first == 0 else (second / first - 1) * 100
        yield CellEffect(a.name, a.shape, name, (len(values), len(others)), (first, second), percent, reasons)
