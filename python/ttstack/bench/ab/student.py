"""Student's t distribution: probabilities and quantiles, by way of the regularised incomplete beta function."""

from __future__ import annotations

from functools import lru_cache


def t_probability(t: float, df: float) -> float:
    """Give P(T <= t) with ``df`` degrees of freedom (Abramowitz and Stegun 26.7.1). Raises ValueError for df <= 0."""
    from mpmath import betainc  # noqa: PLC0415 - slow to import, and only an A/B needs it

    if df <= 0:
        raise ValueError(f"{df} degrees of freedom")
    tail = float(betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True)) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """Give the t with P(T <= t) = ``probability``, to 1e-10 of its size. Raises ValueError outside (0, 1)."""
    if not 0 < probability < 1:
        raise ValueError(f"{probability} is no probability between 0 and 1")
    if probability < 0.5:  # noqa: PLR2004 - the middle of a symmetric distribution
        return -t_quantile(1 - probability, df)
    low, high = 0.0, 1.0
    while t_probability(high, df) < probability:
        low, high = high, high * 2
    while high - low > 1e-10 * max(high, 1.0):
        middle = (low + high) / 2
        if t_probability(middle, df) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
