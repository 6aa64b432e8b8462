"""Whether something changes while a load goes on, told apart from noise."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from ttstack.bench.suites.fit import fit_line

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_BINS = 4


@dataclass(frozen=True, slots=True)
class Drift:
    """A change over the whole time, as a share of the mean: 0.02 is 2 % more at the end. With a 95 % interval."""

    share: float
    low: float
    high: float
    bins: int

    def within(self, limit: float) -> bool:
        """Whether the interval, all of it, is within ``limit`` either way: only then there is no drift to speak of."""
        return -limit <= self.low and self.high <= limit

    def told(self) -> str:
        """Put it into words."""
        return f"{self.share:+.2%} over the run, 95 % interval {self.low:+.2%} to {self.high:+.2%}"


def find_drift(at: Sequence[float], values: Sequence[float], kinds: Sequence[object], bins: int) -> Drift | None:
    """Estimate it by a line through the means of equal spans of time; None with too little to tell.

    ``kinds``: what each value is of (a shape of request). Each is first taken as a ratio to the mean of its kind, so
    that another mixture is no drift. Requests that run together share what happens meanwhile and are not independent:
    means of spans nearly are, so the interval is that of a line through them (Student's t, bins - 2).
    """
    means = {kind: fmean(value for value, its in zip(values, kinds, strict=True) if its == kind) for kind in set(kinds)}
    if not at or min(means.values()) <= 0 or max(at) <= min(at):
        return None
    begin, span = min(at), max(at) - min(at)
    spans: dict[int, list[tuple[float, float]]] = {}
    for moment, value, kind in zip(at, values, kinds, strict=True):
        place = (moment - begin) / span
        spans.setdefault(min(int(place * bins), bins - 1), []).append((place, value / means[kind]))
    if len(spans) < LEAST_BINS:
        return None
    points = [tuple(map(fmean, zip(*those, strict=True))) for _, those in sorted(spans.items())]
    line = fit_line([place for place, _ in points], [ratio for _, ratio in points])
    if line is None or line.slope_reach is None:
        return None
    return Drift(line.slope, line.slope - line.slope_reach, line.slope + line.slope_reach, len(points))
