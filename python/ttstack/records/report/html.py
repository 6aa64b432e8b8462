"""A report as one page that needs nothing else: no script, no font, no picture, no network."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from ttstack.records.report.charts import boots_chart, curve_chart, forest_chart, trend_chart
from ttstack.records.report.results import MOST_CURVES
from ttstack.records.report.words import counted, heading, moment, number, percent, shape_words

if TYPE_CHECKING:
    from jinja2 import Environment

    from ttstack.records.report.drawing import Chart
    from ttstack.records.report.types import Figure, Report, Source, Trend

MOST = 100
"""Rows of a list of runs that are shown."""


def html_page(report: Report) -> str:
    """Write the page."""
    template = _environment().get_template("page.html.j2")
    return template.render(
        report=report,
        sections=_sections(report),
        charts=_Charts(report),
        phases=list(dict.fromkeys(phase for boot in report.boots for phase, _ in boot.phases)),
        unquotable=report.counts.measured - report.counts.quotable,
        most=MOST,
    )


def _sections(report: Report) -> dict[str, str]:
    """Name the parts that there is something for, by their anchors."""
    every = {
        "ab": ("A/B", report.ab),
        "sweeps": ("Over the length of the prompt", report.sweeps),
        "loads": ("Over requests at once", report.loads),
        "results": ("Results", report.results),
        "trends": ("From run to run", report.trends),
        "boots": ("Boots by phase", report.boots),
        "void": ("Void cells", report.void_cells),
        "not-quotable": ("Not quotable", report.not_quotable),
        "stopped": ("Refused, failed, interrupted", report.stopped),
    }
    return {name: title for name, (title, rows) in every.items() if rows}


class _Charts:
    """The charts of a report, each with a name that is unique in the page."""

    def __init__(self, report: Report) -> None:
        self.ab: Chart | None = forest_chart(report.ab, "ab") if any(row.drawn for row in report.ab) else None
        order = _order((*report.sweeps, *report.loads))
        self.sweeps = _curves(report.sweeps, "sweep", order)
        self.loads = _curves(report.loads, "load", order)
        self.trends: list[tuple[Trend, Chart]] = [
            (trend, trend_chart(trend, f"trend-{at}")) for at, trend in enumerate(report.trends)
        ]
        self.boots: Chart | None = boots_chart(report.boots, "boots") if report.boots else None


def _curves(figures: tuple[Figure, ...], name: str, order: dict[str, int]) -> list[tuple[Figure, Chart]]:
    return [(figure, curve_chart(figure, f"{name}-{at}", order)) for at, figure in enumerate(figures)]


def _order(figures: tuple[Figure, ...]) -> dict[str, int]:
    """Give every source a look of its own through all charts, where there are enough; else each chart sees to it."""
    labels = dict.fromkeys(curve.source.label for figure in figures for curve in figure.curves)
    return {label: at for at, label in enumerate(labels)} if len(labels) <= MOST_CURVES else {}


def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - late: slow to import

    folder = files("ttstack.records.report")
    environment = Environment(
        autoescape=True,  # of every template, whatever its name ends in
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        counted=counted,
        number=number,
        moment=moment,
        percent=percent,
        heading=heading,
        shape=shape_words,
        anchor=_anchor,
    )
    return environment


def _anchor(source: Source) -> str:
    """Name the place of a source in the page; a label may hold anything."""
    return hashlib.sha256(f"{source.suite}\n{source.label}".encode("utf-8", "replace")).hexdigest()[:12]
