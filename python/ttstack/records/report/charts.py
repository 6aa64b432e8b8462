"""The charts of a report."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ttstack.records.report.drawing import CROSS, Chart, Key, Look, look, new_chart, svg, tree_of
from ttstack.records.report.scale import close_scale, linear, scale
from ttstack.records.report.words import days, heading, moment, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.records.report.types import AbRow, Boot, Curve, Figure, Trend

_HEIGHT = 270
_ROW = 27
_KILO = 1024
_NAME = 14  # characters of a name beside an axis; the table has all of it
_NARROW = 0.045  # of the width: a narrower bar has no room for its number
_FEW_DAYS = timedelta(days=3)
_TICKS = 5


def curve_chart(figure: Figure, name: str, order: Mapping[str, int] | None = None) -> Chart:
    """Draw curves over prompt tokens or concurrency, each point with a line from its lowest to its highest value.

    ``order``: which number a source has by its label, so that it looks the same in several charts.
    """
    spreads = [spread for curve in figure.curves for _, spread in curve.points]
    y = scale([end for spread in spreads for end in (spread.low, spread.high)])
    places = figure.places
    chart = new_chart(
        _spread_xy(),
        _HEIGHT,
        range=y.range,
        y_labels=y.labels,
        x_labels=[{"label": _tokens(x), "value": _doublings(x)} for x in _apart(places)],
        xrange=(_doublings(places[0]) - 0.2, _doublings(places[-1]) + 0.2),
    )
    keys = []
    for at, curve in enumerate(figure.curves):
        points = []
        for x, spread in curve.points:
            told = f"{curve.source.label}, {_tokens(x)}: {number(spread.median)}"
            told += f" ({number(spread.low)} to {number(spread.high)})"
            point: dict[str, Any] = {"value": (_doublings(x), y.place(spread.median)), "tooltip": told}
            if spread.low != spread.high:
                point["ci"] = {"low": y.place(spread.low), "high": y.place(spread.high)}
            points.append(point)
        chart.add("", points)
        number_of = (order or {}).get(curve.source.label, at)
        keys.append(Key(curve.source.label, look(number_of, bad=not curve.source.quotable), curve.source.against))
    over = figure.over.replace("_", " ") + (" (simulated)" if figure.simulated else "")
    title = f"{heading(figure.value)} over {over}" + (", logarithmic" if y.logarithmic else "")
    says = "; ".join(map(_curve_words, figure.curves))
    drawn = svg(tree_of(chart), [key.look for key in keys], name=name, title=title, says=says)
    return Chart(drawn, tuple(keys))


def _curve_words(curve: Curve) -> str:
    (first, low), (last, high) = curve.points[0], curve.points[-1]
    quoted = "" if curve.source.quotable else " (not quotable)"
    ends = f"{number(low.median)} at {_tokens(first)}, {number(high.median)} at {_tokens(last)}"
    return f"{curve.source.label}{quoted}: {ends}"


def _spread_xy() -> Any:  # noqa: ANN401 - pygal has no types
    import pygal  # noqa: PLC0415 - late: slow to import

    class SpreadXY(pygal.XY):  # type: ignore[misc]
        """Curves with whiskers: pygal draws these for one value, and here a value is a pair."""

        def _confidence_interval(
            self, node: object, x: float, y: float, value: Sequence[float], metadata: object
        ) -> None:
            super()._confidence_interval(node, x, y, value[1], metadata)

    return SpreadXY


def _doublings(x: float) -> float:
    """Say where x is on its axis; 1 is not at 0, through which pygal would draw another line."""
    return math.log2(x) + 1


def _tokens(x: float) -> str:
    return f"{x / _KILO:g}k" if x >= _KILO and x % _KILO == 0 else f"{x:g}"


def _apart(places: Sequence[float]) -> list[float]:
    """Leave out labels that would stand in one another."""
    least = (math.log2(places[-1]) - math.log2(places[0])) / 12
    kept: list[float] = []
    for x in places:
        if not kept or math.log2(x) - math.log2(kept[-1]) >= least:
            kept.append(x)
    return kept


def forest_chart(rows: Sequence[AbRow], name: str) -> Chart:
    """Draw what A/Bs came to: each effect with its interval, beside the line of no effect.

    Rows without an effect are left out, but keep their numbers.
    """
    drawn = [(at, row) for at, row in enumerate(rows, 1) if row.drawn]
    ends = [end * 100 for _, row in drawn for end in (row.low or 0.0, row.high or 0.0)]
    x = linear(min(*ends, -0.5), max(*ends, 0.5), count=4)
    height = len(drawn)
    chart = new_chart(
        _xy(),
        _ROW * height + 70,
        range=(0.4, height + 0.6),
        y_labels=[{"label": _beside(at, row.metric), "value": height - place} for place, (at, row) in enumerate(drawn)],
        xrange=(x.low, x.high),
        x_labels=[{"label": f"{mark:+g} %" if mark else "0", "value": mark} for mark in x.marks],
        show_y_guides=False,
        margin_right=30,
    )
    chart.add("", [(0, 0.4), (0, height + 0.6)], show_dots=False)
    looks = [Look("zero")]
    for place, (_, row) in enumerate(drawn):
        y = height - place
        low, share, high = ((end or 0.0) * 100 for end in (row.low, row.share, row.high))
        told = f"{row.label}: {_effect(row)}"
        chart.add("", [(low, y), (high, y)], show_dots=False)
        chart.add("", [{"value": (share, y), "tooltip": told}], stroke=False)
        looks += [Look(f"interval {_tone(row)}"), Look(f"effect {_tone(row)}", look(2).mark)]
    says = "; ".join(f"{row.label}: {_effect(row)}" for _, row in drawn)
    title = "B against A, with intervals at 95 %"
    return Chart(svg(tree_of(chart), looks, name=name, title=title, says=says))


def _effect(row: AbRow) -> str:
    ends = f"{percent(row.low or 0.0)} to {percent(row.high or 0.0)}"
    return f"{percent(row.share or 0.0)} ({ends}){f', {row.verdict}' if row.verdict else ''}"


def _tone(row: AbRow) -> str:
    return {"better": "good", "worse": "worse"}.get(row.verdict, "plain")


def _beside(at: int, text: str) -> str:
    return f"{at} {text if len(text) <= _NAME else text[:_NAME] + chr(0x2026)}"


def _who(boot: Boot) -> str:
    return f"sim: {boot.arm}" if boot.simulated else boot.arm


def boots_chart(boots: Sequence[Boot], name: str) -> Chart:
    """Draw each boot as a bar from its start to its end, cut into phases that are known by their numbers."""
    import pygal  # noqa: PLC0415 - late: slow to import

    phases = list(dict.fromkeys(phase for boot in boots for phase, _ in boot.phases))
    longest = max(*(boot.seconds for boot in boots), 1e-9)
    x = linear(0.0, longest)
    chart = new_chart(
        pygal.HorizontalStackedBar,
        _ROW * len(boots) + 60,
        range=(0.0, x.high),
        y_labels=[{"label": number(mark), "value": mark} for mark in x.marks],
        x_labels=[_beside(len(boots) - at, _who(boot)) for at, boot in enumerate(reversed(boots))],
        print_labels=True,
    )
    keys = []
    for at, phase in enumerate(phases):
        bars = []
        for boot in reversed(boots):  # the first bar is the lowest
            seconds = boot.of(phase) or 0.0
            wide = seconds > _NARROW * x.high
            told = f"{boot.run}: {phase} {number(seconds)} s"
            bars.append({"value": seconds, "label": str(at + 1) if wide else "", "tooltip": told} if seconds else None)
        chart.add("", bars)
        keys.append(Key(phase, look(at), number=str(at + 1)))
    says = "; ".join(f"{boot.run} {boot.arm}: {number(boot.seconds)} s" for boot in boots)
    title = "Seconds from the start of a run to its end, by phase"
    return Chart(svg(tree_of(chart), [key.look for key in keys], name=name, title=title, says=says), tuple(keys))


def trend_chart(trend: Trend, name: str) -> Chart:
    """Draw a value from run to run, with an upright line where something was changed."""
    times = [days(point.time) for point in trend.points]
    y = close_scale([point.value for point in trend.points])
    begin, end = min(times), max(*times, min(times) + 1e-6)
    room = (end - begin) * 0.03
    chart = new_chart(
        _xy(),
        _HEIGHT,
        range=y.range,
        y_labels=y.labels,
        xrange=(begin - room, end + room),
        x_labels=_dates(begin, end),
        margin_right=26,
        print_labels=True,
    )
    groups: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for point, time in zip(trend.points, times, strict=True):
        told = f"{point.run}, {moment(point.time)}: {number(point.value)}"
        told += f", not quotable: {'; '.join(point.against)}" if point.against else ""
        groups[not point.against].append({"value": (time, y.place(point.value)), "tooltip": told})
    good, bad = look(0), Look("bad cross", CROSS)
    looks = [good, bad]
    chart.add("", groups[True])
    chart.add("", groups[False], stroke=False)
    low, high = y.range
    lines: list[Any] = []
    for at, change in enumerate(trend.changes, 1):
        day = days(change.time)
        lines += [{"value": (day, high), "label": str(at)}, (day, low), None]
    # One series for all: pygal makes every series as long as the longest.
    chart.add("", lines, dots_size=0, allow_interruptions=True)
    looks.append(Look("change"))
    keys = [Key("may be quoted", good)] if groups[True] else []
    keys += [Key("may not be quoted", bad)] if groups[False] else []
    keys += [Key("something was changed, by its number", Look("change", "M-1,-6h2v12h-2z"))] if trend.changes else []
    first, last = trend.points[0], trend.points[-1]
    says = f"{len(trend.points)} runs: {number(first.value)} on {moment(first.time)}"
    says += f", {number(last.value)} on {moment(last.time)}"
    drawn = svg(tree_of(chart), looks, name=name, title=f"{trend.arm}: {heading(trend.value)}", says=says)
    return Chart(drawn, tuple(keys))


def _xy() -> Any:  # noqa: ANN401 - pygal has no types
    import pygal  # noqa: PLC0415 - late: slow to import

    return pygal.XY


def _dates(begin: float, end: float) -> list[dict[str, Any]]:
    """Give marks of an axis of time, in UTC as all times of records."""
    form = "%m-%d" if timedelta(days=end - begin) > _FEW_DAYS else "%d. %H:%M"
    places = [begin + (end - begin) * at / (_TICKS - 1) for at in range(_TICKS)]
    return [{"label": f"{datetime.fromtimestamp(place * 86400, UTC):{form}}", "value": place} for place in places]
