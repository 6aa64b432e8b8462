"""What a number of an arm did from run to run, and what was changed in between."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from ttstack.records.diff import diff
from ttstack.records.report.seen import values_of
from ttstack.records.report.types import Change, Trend, TrendPoint
from ttstack.records.report.words import days, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ttstack.records.report.seen import Seen
    from ttstack.records.types import Measured, Observed

MOST_TRENDS = 8
MOST_POINTS = 300
_TOLD = 6  # differences of one change that are told
_LONG = 60  # characters of a value that was changed
_FOLLOWED = ("tg_ms_per_token", "ttft_s")  # of the suite's first cell that has them, one chart each
_FURTHER = ("request_s",)  # of the suite as a whole, where no cell has the others


def trends_of(runs: Sequence[Seen]) -> tuple[Trend, ...]:
    """Follow every arm that was measured at least twice by one suite; those with the newest runs first."""
    groups: dict[tuple[str, ...], list[Seen]] = {}
    for run in runs:
        if run.measured is not None:
            groups.setdefault((run.arm, str(run.simulated), run.measured.suite, run.host), []).append(run)
    newest = sorted(groups.values(), key=lambda group: group[-1].time, reverse=True)
    found = [trend for group in newest if len(group) > 1 for trend in _follow(group)]
    return tuple(found[:MOST_TRENDS])


def _follow(runs: Sequence[Seen]) -> Iterator[Trend]:
    for cell, value in _followed(runs):
        points, kept = [], []
        for run in runs:
            samples = _samples(run.measured, cell).get(value)
            if samples and _is_time(run.time):
                points.append(TrendPoint(run.id, run.time, median(samples), run.against))
                kept.append(run)
        if len(points) < 2:  # noqa: PLR2004 - one point is no trend
            continue
        last = runs[-1]
        yield Trend(
            arm=last.arm,
            suite=text(last.measured.suite) if last.measured else "",
            simulated=last.simulated,
            cell=text(cell),
            value=value,
            points=tuple(points[-MOST_POINTS:]),
            changes=tuple(_changes(kept[-MOST_POINTS:])),
            left_out=max(len(points) - MOST_POINTS, 0),
        )


def _is_time(time: str) -> bool:
    try:
        days(time)
    except ValueError:
        return False
    return True


def _followed(runs: Sequence[Seen]) -> Iterator[tuple[str, str]]:
    """Choose what to follow by the newest run that has it."""
    told = False
    for value in _FOLLOWED:
        cells = (cell for run in reversed(runs) if run.measured for cell in run.measured.cells)
        name = next((cell.name for cell in cells if cell.values.get(value)), None)
        if name is not None:
            told = True
            yield name, value
    if not told:
        yield from (("", value) for value in _FURTHER)


def _samples(measured: Measured | None, cell: str) -> Mapping[str, Sequence[float]]:
    if measured is None:
        return {}
    tables = [each.values for each in measured.cells if each.name == cell] if cell else [measured.values]
    return values_of(tables[0]) if tables else {}


def _changes(runs: Sequence[Seen]) -> Iterator[Change]:
    for before, now in pairwise(runs):
        kinds = tuple(_kinds(before, now))
        if kinds:
            yield Change(now.id, now.time, kinds, _told(before, now, kinds))


def _kinds(before: Seen, now: Seen) -> Iterator[str]:
    one, two = before.run.opened.asked, now.run.opened.asked
    if one.pin_digest != two.pin_digest:
        yield "pin"
    if one.arm.get("overlays") != two.arm.get("overlays"):
        yield "overlay"
    if one.arm_digest != two.arm_digest:
        yield "arm"
    if one.model_digest != two.model_digest:
        yield "model"
    first, second = _met(before), _met(now)
    if first and second and first != second:
        yield "card"
    if before.run.opened.host.kernel != now.run.opened.host.kernel:
        yield "kernel"


def _met(run: Seen) -> tuple[tuple[str, str], ...]:
    """Give firmware and driver of the cards; which of several alike it was is no change."""
    observed: Observed | None = run.run.closed.observed if run.run.closed else None
    return tuple(sorted({(card.firmware, card.driver) for card in observed.cards})) if observed else ()


def _told(before: Seen, now: Seen, kinds: Sequence[str]) -> str:
    """Say what is otherwise: the values that are behind the digests."""
    found = diff(before.run, now.run)
    told = [
        f"{text(each.path)}: {_short(each.a)} \N{RIGHTWARDS ARROW} {_short(each.b)}"
        for each in found.asked
        if each.path.startswith(("arm.", "pin.", "model."))
    ]
    if "card" in kinds:
        told.append(f"firmware, driver: {_short(_met(before))} \N{RIGHTWARDS ARROW} {_short(_met(now))}")
    if "kernel" in kinds:
        kernels = (before.run.opened.host.kernel, now.run.opened.host.kernel)
        told.append(f"kernel: {_short(kernels[0])} \N{RIGHTWARDS ARROW} {_short(kernels[1])}")
    if not told:
        digests = [
            f"{name}: {getattr(before.run.opened.asked, f'{name}_digest')[:12]} \N{RIGHTWARDS ARROW} "
            f"{getattr(now.run.opened.asked, f'{name}_digest')[:12]}"
            for name in ("pin", "arm", "model")
            if name in kinds
        ]
        told = [text(each) for each in digests]
    more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return "; ".join(told[:_TOLD]) + more


def _short(value: object) -> str:
    said = text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return said if len(said) <= _LONG else f"{said[:_LONG]}\N{HORIZONTAL ELLIPSIS}"
