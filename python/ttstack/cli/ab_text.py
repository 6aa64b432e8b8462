"""An A/B as text: the verdict, the effects as a forest plot of characters, every run; and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ttstack.bench.ab.effect import LEVEL
from ttstack.cli.command import print_table
from ttstack.printable import printable
from ttstack.records.build import jsonable

if TYPE_CHECKING:
    from ttstack.bench.ab.cells import AbCell
    from ttstack.bench.ab.design import Mode
    from ttstack.bench.ab.effect import Effect
    from ttstack.bench.ab.verdict import MetricFound, Report

_WIDTH = 41  # of the plot, odd: no effect is in its middle
_SHOWN = 12  # metrics beside the one that has the verdict
_COLUMNS = ("PAIR", "ARM", "RUN", "CARDS", "OUTCOME", "VALUE", "COUNTS")
_KINDS = {
    "swap": "both at once on a card each, changing cards",
    "turns": "one after the other on the same cards, A B B A",
}


def kind_of(mode: Mode) -> str:
    """Say how the runs of a pair are made."""
    return _KINDS[mode]


def percent(share: float | None) -> str:
    """Write a share with its sign."""
    return "?" if share is None else f"{share * 100:+.2f} %"


def interval(effect: Effect) -> str:
    """Write an effect and its bounds."""
    bounds = "" if effect.low is None else f" [{percent(effect.low)}, {percent(effect.high)}]"
    return percent(effect.share) + bounds


def forest(metrics: list[MetricFound]) -> list[str]:
    """Draw a line for each metric, on the scale of the first: ``[---o---]``, and ``:`` where there is no effect."""
    first = metrics[0].effects.treatment
    ends = [abs(end) for end in (first.low, first.high) if end is not None]
    reach = min(2 * max([*ends, 0.001]), 1.0)  # others may reach beyond
    wide = max([len(metric.name) for metric in metrics], default=0)
    left, right = f"{-reach * 100:.3g} %", f"{reach * 100:+.3g} %"
    lines = [f"{'':{wide}}  {left:<{_WIDTH // 2}}0{right:>{_WIDTH // 2}}"]
    lines += [
        f"{m.name:<{wide}}  {_line(m.effects.treatment, reach)}  {interval(m.effects.treatment)}" for m in metrics
    ]
    return lines


def _line(effect: Effect, reach: float) -> str:
    def at(share: float) -> int:
        return round((min(max(share / reach, -1.0), 1.0) + 1) / 2 * (_WIDTH - 1))

    cells = [" "] * _WIDTH
    if effect.low is not None and effect.high is not None:
        low, high = at(effect.low), at(effect.high)
        cells[low : high + 1] = "-" * (high - low + 1)
        cells[_WIDTH // 2] = ":"
        # Beyond the scale an interval has no end.
        cells[low] = "<" if effect.low < -reach else "["
        cells[high] = ">" if effect.high > reach else "]"
    else:
        cells[_WIDTH // 2] = ":"
    cells[at(effect.share)] = "o"
    return "".join(cells)


def print_report(report: Report) -> None:
    """Print all of it for people."""
    a, b = report.arms
    plan = report.place
    print(f"a/b      {report.id}: {a or '?'} (A) against {b or '?'} (B){', one arm' if report.one_arm else ''}")
    print(f"verdict  {report.verdict}{_of(report)}")
    for reason in report.reasons:
        print(f"         {printable(reason)}")
    print(f"design   {plan.pairs} pairs, {_KINDS[report.mode]}; {report.counted} count, {report.missing} do not")
    print(f"suite    {report.suite}, {plan.metric} has the verdict")
    for each in report.declared:
        print(f"differs  {printable(each.key)}: A {each.a!r}, B {each.b!r}")
    if report.metrics:
        _print_effects(report)
    for note in report.notes:
        print(f"note     {printable(note)}")
    print()
    print_table(_COLUMNS, [_row(cell, report) for cell in report.cells])


def _of(report: Report) -> str:
    if report.verdict in {"insufficient", "invalid"} or not report.metrics:
        return ""
    first = report.metrics[0]
    effect = first.effects.treatment
    if report.verdict == "no difference detected":
        return f" ({first.name}: B's may be from {percent(effect.low)} to {percent(effect.high)} of A's)"
    return f" ({first.name}: B's is {interval(effect)} of A's, and {first.better} is better)"


def _print_effects(report: Report) -> None:
    first = report.metrics[0]
    seen = first.effects
    print(f"A        {first.a:.6g}, B {first.b:.6g} (medians over boots)")
    print(f"method   paired, ratios, t interval of {LEVEL:.0%}, n = {seen.n}, {seen.df} degrees of freedom")
    print(f"noise    {percent(seen.noise).lstrip('+')} from pair to pair")
    if seen.card is not None:
        print(f"cards    {interval(seen.card)}, the second against the first")
    if seen.period is not None:
        print(f"period   {interval(seen.period)}, the later run of a pair against the earlier")
    print(f"drift    {percent(first.drift)} of both from pair to pair")
    print()
    for line in forest([*report.metrics[: _SHOWN + 1]]):
        print(printable(line))
    if len(report.metrics) > _SHOWN + 1:
        print(f"and {len(report.metrics) - _SHOWN - 1} more metrics: --json")
    if len(report.metrics) > 1:
        print(f"The verdict is of {first.name} alone; of so many others some differ by chance.")
    print()


def _row(cell: AbCell, report: Report) -> tuple[str, ...]:
    value = cell.values.get(report.place.metric)
    hidden = not report.finished  # who sees them is tempted to stop
    against = against_of(cell, report)
    return (
        str(cell.place.pair + 1) + (f" (attempt {cell.place.attempt + 1})" if cell.place.attempt else ""),
        f"{cell.place.side} {cell.record.opened.arm}",
        cell.record.id,
        ",".join(cell.cards) or ",".join(cell.record.opened.asked.cards),
        cell.record.outcome,
        "" if value is None or hidden else f"{value:.6g}",
        f"no: {'; '.join(against)}" if against else "yes",
    )


def against_of(cell: AbCell, report: Report) -> list[str]:
    """Say why a run does not count."""
    pair = next(each for each in report.pairs if each.number == cell.place.pair)
    if all(cell is not each for each in pair.cells.values()):
        return ["this pair was measured again", *cell.against]
    others = [other for other in pair.cells.values() if other is not cell and other.against]
    lost = [f"{other.place.side} of this pair does not" for other in others if not cell.against]
    return [*pair.against, *cell.against, *lost]


def report_json(report: Report) -> dict[str, Any]:
    """Put all of it into one document."""
    plan = report.place
    return {
        "id": report.id,
        "verdict": report.verdict,
        "reasons": list(report.reasons),
        "notes": list(report.notes),
        "exit_code": int(report.exit_code),
        "arms": {"A": report.arms[0], "B": report.arms[1]},
        "one_arm": report.one_arm,
        "declared": jsonable(report.declared),
        "suite": report.suite,
        "metric": plan.metric,
        "mode": report.mode,
        "concurrent": report.mode == "swap",
        "pairs": {"planned": plan.pairs, "counted": report.counted, "missing": report.missing},
        "stop_rule": "the number of pairs was fixed before the first one",
        "level": LEVEL,
        "method": "paired logarithms, least squares, t interval",
        "finished": report.finished,
        "metrics": [_metric_json(metric) for metric in report.metrics],
        "outputs": {**_table(report.outputs), "equal": report.outputs.equal, "others_allowed": plan.other_outputs},
        "cells": [_cell_json(cell, report) for cell in report.cells],
    }


def _metric_json(metric: MetricFound) -> dict[str, Any]:
    return {
        "name": metric.name,
        "better": metric.better,
        "a": metric.a,
        "b": metric.b,
        "drift": metric.drift,
        **_table(metric.effects),
    }


def _table(value: object) -> dict[str, Any]:
    made = jsonable(value)
    assert isinstance(made, dict)  # noqa: S101 - it is a dataclass
    return made


def _cell_json(cell: AbCell, report: Report) -> dict[str, Any]:
    against = against_of(cell, report)
    return {
        "run": cell.record.id,
        "time": cell.record.opened.time,
        "pair": cell.place.pair,
        "side": cell.place.side,
        "order": cell.place.order,
        "position": cell.place.position,
        "attempt": cell.place.attempt,
        "cards": list(cell.cards),
        "cards_asked": list(cell.record.opened.asked.cards),
        "outcome": cell.record.outcome,
        "counts": not against,
        "against": against,
        "values": dict(cell.values) if report.finished else {},
    }
