"""From runs to all that a report says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ttstack.records.build import timestamp
from ttstack.records.report.results import MOST_RESULTS, figures_of, results_of
from ttstack.records.report.seen import look
from ttstack.records.report.trends import trends_of
from ttstack.records.report.types import Boot, Counts, Report, Told, VoidCell
from ttstack.records.report.words import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from ttstack.records.log import RunRecord
    from ttstack.records.report.seen import Seen
    from ttstack.records.report.types import AbRow

MOST_BOOTS = 12


def gather(  # noqa: PLR0913 - what is around the runs, by name
    runs: Sequence[RunRecord],
    *,
    title: str,
    files: Sequence[str] = (),
    faults: int = 0,
    ab: Sequence[AbRow] = (),
    made: datetime | None = None,
) -> Report:
    """Put together what runs come to, in the order of their opening.

    ``files``: where they are from. ``faults``: how many lines of these are no records. ``ab``: what A/Bs came to,
    which is for those to compute who know how. Raises RecordsError when a line turns out to be none, and ValueError
    when there are no runs.
    """
    if not runs:
        raise ValueError("a report is of at least one run")
    seen = [look(run) for run in sorted(runs, key=lambda run: run.time)]
    results = results_of(seen)
    shown = results[:MOST_RESULTS]
    newest = seen[::-1]
    return Report(
        title=text(title),
        made=timestamp(made),
        files=tuple(map(text, files)),
        hosts=tuple(dict.fromkeys(run.host for run in seen)),
        first=seen[0].time,
        last=seen[-1].time,
        counts=_counts(seen),
        faults=faults,
        results=tuple(shown),
        results_left_out=len(results) - len(shown),
        sweeps=figures_of(shown, "prompt_tokens"),
        loads=figures_of(shown, "concurrency"),
        ab=tuple(ab),
        boots=tuple(_boots(newest))[:MOST_BOOTS],
        trends=trends_of(seen),
        void_cells=tuple(_void_cells(newest)),
        stopped=tuple(_stopped(newest)),
        not_quotable=tuple(_told(run, run.against) for run in newest if run.measured is not None and run.against),
    )


def _counts(seen: Sequence[Seen]) -> Counts:
    return Counts(
        runs=len(seen),
        measured=sum(run.measured is not None for run in seen),
        quotable=sum(run.measured is not None and not run.against for run in seen),
        simulated=sum(run.simulated for run in seen),
        outcomes=dict(Counter(run.run.outcome for run in seen).most_common()),
    )


def _boots(seen: Sequence[Seen]) -> Iterator[Boot]:
    for run in seen:
        closed = run.run.closed
        if closed is None or not any(phase.name == "boot" for phase in closed.phases):
            continue
        yield Boot(
            run=run.id,
            time=run.time,
            arm=run.arm,
            simulated=run.simulated,
            outcome=run.run.outcome,
            cache=(closed.observed.cache or "") if closed.observed else "",
            phases=tuple((text(phase.name), max(phase.seconds, 0.0)) for phase in closed.phases),
        )


def _void_cells(seen: Sequence[Seen]) -> Iterator[VoidCell]:
    for run in seen:
        for cell in run.measured.cells if run.measured else ():
            if not cell.valid:
                yield VoidCell(
                    run=run.id,
                    time=run.time,
                    arm=run.arm,
                    simulated=run.simulated,
                    suite=text(run.measured.suite) if run.measured else "",
                    cell=text(cell.name),
                    reasons=tuple(map(text, cell.reasons)),
                    voids={text(code): count for code, count in cell.voids.items()},
                )


def _stopped(seen: Sequence[Seen]) -> Iterator[Told]:
    for run in seen:
        if run.run.outcome in {"ok", "running"}:
            continue
        closed = run.run.closed
        said = [closed.reason, closed.text] if closed else ["it was never closed: whoever ran it is gone"]
        yield _told(run, tuple(text(part) for part in said if part))


def _told(run: Seen, reasons: tuple[str, ...]) -> Told:
    verb = text(run.run.opened.verb)
    return Told(run.id, run.time, verb, run.arm, run.simulated, run.run.outcome, reasons)
