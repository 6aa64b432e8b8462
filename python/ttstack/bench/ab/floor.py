"""The noise floor: how much two boots of one arm differ on a host, as its A/As have shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ttstack.bench.ab.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ttstack.bench.ab.design import Mode
    from ttstack.bench.ab.verdict import Report
    from ttstack.records.log import RunRecord


_OF_NONE = b'"ab":null'


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a floor is asked for; only an A/A that was made in this way says something about it."""

    hostname: str
    simulated: bool
    suite: str
    metric: str
    mode: Mode
    arm: str = ""  # one of this arm is preferred


@dataclass(frozen=True, slots=True)
class Floor:
    """``noise``: standard deviation of a pair's difference, as a share; known from ``df`` degrees of freedom alone."""

    noise: float
    pairs: int
    df: int
    id: str  # of the A/A
    arm: str
    time: str  # when it began, UTC

    def age_s(self, now: datetime | None = None) -> float:
        """Say how old it is, seconds of the wall clock."""
        return ((now or datetime.now(UTC)) - datetime.fromisoformat(self.time)).total_seconds()


def ab_runs(runs: Iterable[RunRecord]) -> Mapping[str, Sequence[RunRecord]]:
    """Sort the runs that are part of an A/B by its id, the A/Bs in the order of their beginning."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        # Most of many thousand runs are of none: these need not be parsed.
        place = None if _OF_NONE in run.open_line.raw else run.raw_open.get("ab")
        if place is not None:
            found.setdefault(place["id"], []).append(run)
    return found


def find_floor(runs: Iterable[RunRecord], wanted: Wanted) -> Floor | None:
    """Find the newest A/A of this host, suite and mode that had all its pairs measured; None when there is none.

    What it found does not matter, only that it is whole: to choose by the result would make the floor too low.
    """
    found: list[Floor] = []
    for theirs in ab_runs(runs).values():
        first = theirs[0].opened
        if (first.host.hostname, first.simulated, first.asked.suite) != (
            wanted.hostname,
            wanted.simulated,
            wanted.suite,
        ):
            continue
        floor = _floor(judge(theirs), wanted, first.time)
        if floor is not None:
            found.append(floor)
    own = [floor for floor in found if floor.arm == wanted.arm]
    best = own or found
    return best[-1] if best else None


def _floor(report: Report, wanted: Wanted, time: str) -> Floor | None:
    if not report.one_arm or report.mode != wanted.mode:
        return None
    for metric in report.metrics:  # none of one that is not finished, or invalid
        noise, df = metric.effects.noise, metric.effects.df
        if metric.name == wanted.metric and noise is not None:
            return Floor(noise, metric.effects.n, df, report.id, report.arms[0], time)
    return None
