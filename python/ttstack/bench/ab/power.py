"""How many pairs it takes to see an effect, and which effect so many pairs can see."""

from __future__ import annotations

import math

from ttstack.bench.ab.effect import LEVEL
from ttstack.bench.ab.student import t_quantile

POWER = 0.8
MOST_PAIRS = 1000


def detectable(noise: float, pairs: int, columns: int, *, power: float = POWER, level: float = LEVEL) -> float | None:
    """Give the smallest effect (a share) that ``pairs`` pairs show with this probability; None: no such effect.

    ``noise`` is the standard deviation of a pair's difference (a share, from an A/A), ``columns`` the effects that are
    estimated beside each other. (t_level + t_power) x noise / sqrt(n), with n - columns degrees of freedom: the usual
    approximation of the noncentral t. At 4 pairs it shows the effect in 77 % of cases instead of 80 %, at 6 in 79 %.
    """
    df = pairs - columns
    if df < 1:
        return None
    reach = t_quantile((1 + level) / 2, df) + t_quantile(power, df)
    return math.expm1(min(reach * noise / math.sqrt(pairs), 700.0))  # what a number holds


def pairs_for(effect: float, noise: float, columns: int, *, power: float = POWER, level: float = LEVEL) -> int | None:
    """Give the smallest even number of pairs that shows this effect (a share, above 0); None beyond MOST_PAIRS."""

    def shows(half: int) -> bool:
        seen = detectable(noise, 2 * half, columns, power=power, level=level)
        return seen is not None and seen <= effect

    low, high = 0, MOST_PAIRS // 2  # more pairs always show more: what is looked for lies in (low, high]
    if not shows(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return 2 * high
