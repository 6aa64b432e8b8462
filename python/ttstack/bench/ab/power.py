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
    approximation of the noncentral t, a few percent off at four pairs and less beyond (tests/bench/test_ab_power.py).
    """
    df = pairs - columns
    if df < 1:
        return None
    reach = t_quantile((1 + level) / 2, df) + t_quantile(power, df)
    return math.expm1(reach * noise / math.sqrt(pairs))


def pairs_for(effect: float, noise: float, columns: int, *, power: float = POWER, level: float = LEVEL) -> int | None:
    """Give the even number of pairs that shows this effect (a share, above 0); None beyond MOST_PAIRS."""
    for pairs in range(columns + 1 + (columns + 1) % 2, MOST_PAIRS + 1, 2):
        seen = detectable(noise, pairs, columns, power=power, level=level)
        if seen is not None and seen <= effect:
            return pairs
    return None
