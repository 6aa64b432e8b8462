"""A report as Markdown for a pull request: what was found, whether it may be quoted, and why not."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from ttstack.markdown import table
from ttstack.records.report.words import counted, heading, moment, number, percent, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.records.report.types import CellRow, Report, Results, Source, Spread, Told

MOST = 20
"""Rows of a list that are shown."""

_COLUMNS = ("ttft_s", "pp_tokens_per_s", "tg_ms_per_token", "tokens_per_s", "goodput_share")
_PLAIN = re.compile(r"[^`|\\\r\n]+")
_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&@]")
_CROSS, _TICK = "\N{CROSS MARK}", "\N{WHITE HEAVY CHECK MARK}"


def markdown(report: Report) -> str:
    """Write it, for GitHub's Markdown. What comes from records stands as code: it is no markup, and calls nobody."""
    lines = [f"# {_MARKUP.sub(_entity, report.title)}", "", *_head(report)]
    for title, part in (
        ("A/B", _ab(report)),
        ("Results", _results(report)),
        ("Changes", _changes(report)),
        ("Void cells", _void(report)),
        ("Not quotable", _list(report.not_quotable, "why not")),
        ("Refused, failed, interrupted", _list(report.stopped, "why")),
    ):
        body = list(part)
        if body:
            lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def code(value: str) -> str:
    """Set text from elsewhere as code, also in a table: nothing in it ends the code, the cell or the line."""
    said = text(value)
    if not said.strip():
        return "\N{EN DASH}"
    return f"`{said}`" if _PLAIN.fullmatch(said) else f"<code>{_SPECIAL.sub(_entity, said)}</code>"


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def _head(report: Report) -> Iterator[str]:
    counts = report.counts
    others = "".join(f", {count} {outcome}" for outcome, count in counts.outcomes.items() if outcome != "ok")
    yield (
        f"{counted(counts.runs, 'run')} of {moment(report.first)} to {moment(report.last)} UTC"
        f" on {', '.join(map(code, report.hosts))}: {counts.measured} measured, **{counts.quotable} quotable**{others}."
    )
    unquotable = counts.measured - counts.quotable
    if unquotable:
        yield from (
            "",
            "> [!CAUTION]",
            f"> {_CROSS} **{unquotable} of {counted(counts.measured, 'measured run')} may not be quoted.**",
        )
        yield f"> Their numbers are marked {_CROSS} here; the reasons are below."
    if counts.simulated:
        yield from (
            "",
            "> [!IMPORTANT]",
            f"> **{counts.simulated} of {counted(counts.runs, 'run')} simulated: no card was involved.**",
        )
    if report.faults:
        yield from ("", "> [!WARNING]", f"> {counted(report.faults, 'line')} left out of the files, as no records.")


def _ab(report: Report) -> Iterator[str]:
    rows = []
    for row in report.ab:
        reasons = f": {'; '.join(map(code, row.reasons))}" if row.reasons else ""
        verdict = f"**{row.verdict}**" if row.verdict else "none: not the planned metric"
        rows.append(
            (
                code(row.id) + (" (simulated)" if row.simulated else ""),
                f"{code(row.arms[0])} (A), {code(row.arms[1])} (B)",
                code(row.metric),
                "" if row.share is None else percent(row.share),
                f"{percent(row.low or 0.0)} to {percent(row.high or 0.0)}" if row.drawn else "",
                str(row.pairs),
                f"{_CROSS} {verdict}{reasons}" if reasons else verdict,
            )
        )
    if rows:
        yield from table(("A/B", "arms", "metric", "B against A", "95 % interval", "pairs", "verdict on B"), rows)


def _results(report: Report) -> Iterator[str]:
    if not report.results:
        return
    yield "Medians; lowest and highest value in brackets."
    yield ""
    found = [_of_source(result) for result in report.results]
    columns = [name for name in _COLUMNS if any(name in row.values for result in report.results for row in result.rows)]
    rows = [
        _row(result.source, row, columns, again=at > 0)
        for result in report.results
        for at, row in enumerate(_ends(result.cells or result.rows))
    ]
    yield from table(("arm", "suite", "cell", "boots", *map(heading, columns), "quotable"), rows)
    if len(report.results) < MOST:
        for lines in found:
            yield from lines


def _ends(rows: Sequence[CellRow]) -> Sequence[CellRow]:
    """Give the first and the last: the lightest load and the heaviest."""
    return rows if len(rows) < len(("first", "last")) else (rows[0], rows[-1])


def _row(source: Source, row: CellRow, columns: Sequence[str], *, again: bool) -> tuple[str, ...]:
    why = "as above" if again else "; ".join(map(code, source.against))
    mark = _TICK if source.quotable else f"{_CROSS} {why}"
    values = [_spread(row.values.get(name), source) for name in columns]
    return (code(source.label), code(source.suite), code(row.name), str(source.boots), *values, mark)


def _of_source(result: Results) -> Iterator[str]:
    source, columns = result.source, result.columns
    mark = "" if source.quotable else f" {_CROSS} not quotable"
    yield from ("", f"<details><summary>{code_html(source.label)} {code_html(source.suite)}{mark}</summary>", "")
    if not source.quotable:
        yield from (f"{_CROSS} {'; '.join(map(code, source.against))}", "")
    if result.cells:
        rows = [
            (code(row.name), str(row.n), *(_spread(row.values.get(name), source) for name in columns))
            for row in result.cells
        ]
        yield from table(("cell", "n", *(code_heading(name) for name in columns)), rows)
        yield ""
    if result.whole:
        rows = [(code_heading(name), _spread(value, source)) for name, value in result.whole.values.items()]
        yield from table(("of the suite as a whole", "value"), rows)
        yield ""
    yield "</details>"


def code_html(value: str) -> str:
    """Set text from elsewhere as code where HTML begins a line, in which there is no Markdown."""
    return f"<code>{escape(text(value))}</code>"


def code_heading(name: str) -> str:
    """Write the name of a value for a column; one that is not known here is somebody else's text."""
    return heading(name) if re.fullmatch(r"[a-z0-9_]+", name) else code(name)


def _spread(value: Spread | None, source: Source) -> str:
    if value is None:
        return ""
    ends = f" ({number(value.low)} to {number(value.high)})" if value.low != value.high else ""
    return f"{number(value.median)}{ends}{'' if source.quotable else f' {_CROSS}'}"


def _changes(report: Report) -> Iterator[str]:
    changes = {(trend.arm, change.run): (trend, change) for trend in report.trends for change in trend.changes}
    newest = sorted(changes.values(), key=lambda each: each[1].time, reverse=True)
    rows = [
        (moment(change.time), code(trend.arm), ", ".join(change.kinds), code(change.text))
        for trend, change in newest[:MOST]
    ]
    if rows:
        yield from table(("from (UTC)", "arm", "changed", "what"), rows)
        yield from _rest(len(newest))


def _void(report: Report) -> Iterator[str]:
    rows = [
        (
            moment(cell.time),
            code(cell.run),
            code(cell.arm) + (" (simulated)" if cell.simulated else ""),
            f"{code(cell.suite)} {code(cell.cell)}",
            f"{_CROSS} {'; '.join(map(code, cell.reasons))}",
        )
        for cell in report.void_cells[:MOST]
    ]
    if rows:
        yield from table(("when (UTC)", "run", "arm", "cell", "why"), rows)
        yield from _rest(len(report.void_cells))


def _list(told: Sequence[Told], head: str) -> Iterator[str]:
    rows = [
        (
            moment(row.time),
            code(row.run),
            f"{row.verb} {code(row.arm)}" + (" (simulated)" if row.simulated else ""),
            row.outcome,
            f"{_CROSS} {'; '.join(map(code, row.reasons))}",
        )
        for row in told[:MOST]
    ]
    if rows:
        yield from table(("when (UTC)", "run", "what", "outcome", head), rows)
        yield from _rest(len(told))


def _rest(count: int) -> Iterator[str]:
    if count > MOST:
        yield from ("", f"The newest {MOST} of {count}.")
