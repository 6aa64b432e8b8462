"""A straight line through points by least squares, with how well it is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Line:
    """y = fixed + slope x. ``residuals`` are y minus the line, in the order of the points.

    The half widths are those of intervals by Student's t with n - 2 degrees of freedom, at ``LEVEL``; None for two
    points, through which a line always goes.
    """

    fixed: float
    slope: float
    residuals: tuple[float, ...]
    fixed_reach: float | None
    slope_reach: float | None


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line | None:
    """Fit; None unless there are two different x."""
    n = len(x)
    if len(set(x)) < 2:  # noqa: PLR2004 - see above
        return None
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    across = math.fsum((one - mean_x) ** 2 for one in x)
    slope = math.fsum((one - mean_x) * (two - mean_y) for one, two in zip(x, y, strict=True)) / across
    fixed = mean_y - slope * mean_x
    residuals = tuple(two - fixed - slope * one for one, two in zip(x, y, strict=True))
    if n == 2:  # noqa: PLR2004 - see above
        return Line(fixed, slope, residuals, None, None)
    from ttstack.bench.ab.student import t_quantile  # noqa: PLC0415 - slow to import

    noise = math.sqrt(math.fsum(left * left for left in residuals) / (n - 2))
    t = t_quantile((1 + LEVEL) / 2, n - 2)
    slope_reach = t * noise / math.sqrt(across)
    fixed_reach = t * noise * math.sqrt(1 / n + mean_x * mean_x / across)
    return Line(fixed, slope, residuals, fixed_reach, slope_reach)
