"""From raw values to what a record says of them; plain formulas, so that anybody can compute them again."""

from __future__ import annotations

import math
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from ttstack.records.types import Stat

if TYPE_CHECKING:
    from collections.abc import Sequence

PERCENTILES = (90, 95, 99)
BEYOND = 5
"""Values that must lie above a percentile for it to be told: p90 needs 50 values, p95 100, p99 500. With fewer it is
little more than the largest value under another name."""


def summarise(values: Sequence[float]) -> Stat:
    """Describe a sample of at least one finite value, in the values' own unit. Raises ValueError for an empty one."""
    if not values:
        raise ValueError("no values")
    return Stat(
        n=len(values),
        median=median(values),
        mean=fmean(values),
        sd=stdev(values) if len(values) > 1 else None,
        low=min(values),
        high=max(values),
        percentiles={f"p{rank}": percentile(values, rank) for rank in PERCENTILES if _allows(len(values), rank)},
    )


def percentile(values: Sequence[float], rank: float) -> float:
    """Give the smallest value that at least ``rank`` percent of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * rank / 100), 1) - 1]


def _allows(n: int, rank: int) -> bool:
    return n * (100 - rank) >= BEYOND * 100
