"""Student's t distribution for whole degrees of freedom: probabilities and quantiles."""

from __future__ import annotations

import math
from functools import lru_cache

_CLOSE = 1e-12  # of a quantile's size


def t_probability(t: float, df: int) -> float:
    """Give P(T <= t) with ``df`` degrees of freedom, to about 1e-15. Raises ValueError for less than one.

    Finite sums of Abramowitz and Stegun, 26.7.3 (odd) and 26.7.4 (even).
    """
    if df < 1:
        raise ValueError(f"{df} degrees of freedom")
    angle = math.atan(t / math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = 0.0
    for step in range(odd, df - 1, 2):
        total += term
        term *= cosine * cosine * (step + 1) / (step + 2)
    inside = (angle + sine * total) * 2 / math.pi if odd else sine * total
    return min(max((1 + inside) / 2, 0.0), 1.0)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: int) -> float:
    """Give the t with P(T <= t) = ``probability``. Raises ValueError outside (0, 1) and as ``t_probability`` does."""
    if not 0 < probability < 1:
        raise ValueError(f"{probability} is no probability between 0 and 1")
    if probability < 0.5:  # noqa: PLR2004 - the middle of a symmetric distribution
        return -t_quantile(1 - probability, df)
    low, high = 0.0, 1.0
    while t_probability(high, df) < probability:
        low, high = high, high * 2
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if t_probability(middle, df) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
