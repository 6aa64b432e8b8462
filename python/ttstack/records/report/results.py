"""From runs to the numbers of those that asked for the same, and to curves of them."""

from __future__ import annotations

import json
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Literal

from ttstack.records.report.seen import values_of
from ttstack.records.report.types import CellRow, Curve, Figure, Results, Source, Spread
from ttstack.records.report.words import shape_words, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ttstack.records.report.seen import Seen
    from ttstack.records.types import Cell, Json

Over = Literal["prompt_tokens", "concurrency"]
Samples = dict[str, list[tuple[float, ...]]]  # value -> its samples, boot by boot

MOST_RESULTS = 20
MOST_CURVES = 8  # as many as there are colours and shapes
MOST_REASONS = 8
_HOW_OFTEN = frozenset({"runs", "waves"})  # parts of a shape that say how long was measured, not what

SWEPT = ("ttft_s", "pp_tokens_per_s", "tg_ms_per_token")
LOADED = ("tg_ms_per_token", "tokens_per_s", "ttft_s", "goodput_share")


def results_of(runs: Sequence[Seen]) -> list[Results]:
    """Give the numbers of all that was measured, by what was asked for; the newest first."""
    groups: dict[tuple[str, ...], list[Seen]] = {}
    key: tuple[str, ...]
    for run in runs:
        if run.measured is not None:
            asked = run.run.opened.asked
            digests = (asked.arm_digest, asked.pin_digest, asked.model_digest)
            key = (run.arm, str(run.simulated), run.measured.suite, run.host, *digests)
            groups.setdefault(key, []).append(run)
    newest = sorted(groups, key=lambda key: groups[key][-1].time, reverse=True)
    hosts = {key[3] for key in groups}
    found = []
    for key in newest:
        where = f" on {key[3]}" if len(hosts) > 1 else ""
        found.append(_pool(f"{key[0]}{_apart(key, groups)}{where}", groups[key]))
    return found


def _apart(key: tuple[str, ...], keys: Iterable[tuple[str, ...]]) -> str:
    """Say by which digests a group is told from others of its name."""
    named = [other for other in keys if other[:3] == key[:3]]
    names = {4: "arm", 5: "pin", 6: "model"}
    differ = [f"{name} {key[at][:7]}" for at, name in names.items() if len({other[at] for other in named}) > 1]
    return f" @ {', '.join(differ)}" if differ else ""


def _pool(label: str, runs: Sequence[Seen]) -> Results:
    """Put the boots together. Those that may not be quoted count only where there are no others."""
    used = [run for run in runs if not run.against] or list(runs)
    reasons = tuple(dict.fromkeys(reason for run in used for reason in run.against))
    more = (f"and {len(reasons) - MOST_REASONS} more reasons",) if len(reasons) > MOST_REASONS else ()
    first, last = used[0], used[-1]
    suite = text(last.measured.suite) if last.measured else ""
    source = Source(
        label=f"{label}{' (simulated)' if last.simulated else ''}",
        arm=last.arm,
        suite=suite,
        simulated=last.simulated,
        against=(*reasons[:MOST_REASONS], *more),
        boots=len(used),
        left_out=len(runs) - len(used),
        first=first.time,
        last=last.time,
    )
    return Results(source, _rows(used))


def _rows(runs: Sequence[Seen]) -> tuple[CellRow, ...]:
    kinds: dict[tuple[str, str, int], tuple[Mapping[str, Json], Samples, Samples]] = {}
    for run in runs:
        if run.measured is None:
            continue
        _, whole, _ = kinds.setdefault(("", "", 0), ({}, {}, {}))
        _add(whole, run.measured.values)
        twins: Counter[tuple[str, str]] = Counter()
        for cell in run.measured.cells:
            kind = _kind(cell)
            _, ours, theirs = kinds.setdefault((*kind, twins[kind]), (cell.shape, {}, {}))
            twins[kind] += 1  # a second cell of one kind is no second boot
            _add(ours, cell.values)
            _add(theirs, cell.server)
    return tuple(
        CellRow(text(name), shape, _spreads(ours), _spreads(theirs))
        for (name, _, _), (shape, ours, theirs) in kinds.items()
        if ours or theirs
    )


def _kind(cell: Cell) -> tuple[str, str]:
    return cell.name, json.dumps({key: cell.shape[key] for key in sorted(cell.shape)}, default=str)


def _add(samples: Samples, table: Mapping[str, tuple[float, ...]]) -> None:
    for name, values in values_of(table).items():
        samples.setdefault(name, []).append(tuple(values))


def _spreads(samples: Samples) -> dict[str, Spread]:
    return {name: spread(boots) for name, boots in samples.items()}


def spread(boots: Sequence[Sequence[float]]) -> Spread:
    """Describe the samples of some boots, none of them empty."""
    middles = boots[0] if len(boots) == 1 else [median(boot) for boot in boots]
    return Spread(median(middles), min(middles), max(middles), sum(map(len, boots)), len(boots))


def figures_of(results: Sequence[Results], over: Over) -> tuple[Figure, ...]:
    """Give a figure for each value that was measured at several places along ``over``, all else being equal."""
    values = SWEPT if over == "prompt_tokens" else LOADED
    found: dict[tuple[bool, str, str], list[Curve]] = {}
    for result in results:
        for (value, shape), points in _along(result, over, values).items():
            curves = found.setdefault((result.source.simulated, value, shape), [])
            if len(points) > 1 and len(curves) < MOST_CURVES:
                curves.append(Curve(result.source, tuple(sorted(points.items()))))
    # What no card was involved in comes last; else this is stable: the newest shape first.
    order = sorted(filter(found.get, found), key=lambda key: (key[0], values.index(key[1])))
    return tuple(Figure(key[1], key[0], over, key[2], tuple(found[key])) for key in order)


def _along(result: Results, over: Over, values: Sequence[str]) -> dict[tuple[str, str], dict[float, Spread]]:
    found: dict[tuple[str, str], dict[float, Spread]] = {}
    for row in result.rows:
        x = row.shape.get(over)
        if isinstance(x, bool) or not isinstance(x, int | float) or x <= 0:
            continue
        words = shape_words(row.shape, but=_HOW_OFTEN | {over})
        for value in values:
            if value in row.values:
                found.setdefault((value, words), {}).setdefault(float(x), row.values[value])
    return found
