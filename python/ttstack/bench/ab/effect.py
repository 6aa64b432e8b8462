"""From pairs of values to effects with intervals.

The unit of replication is the pair of boots, never the request: requests of one server share its boot, its cache and
its card. A pair's difference is that of the logarithms, so that effects are ratios and no unit matters. It is explained by

    difference = treatment + card x (A on the first card: +1, else -1) + period x (A first: +1, else -1) + noise

where a column takes part only when it varies. Least squares; each effect has a t interval with n - columns degrees of
freedom, which covers at every n for normal noise, as a percentile bootstrap of few pairs does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ttstack.bench.ab.student import t_probability, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95

Side = Literal["first", "second", ""]


@dataclass(frozen=True, slots=True)
class Pair:
    """One value of each arm, measured as near to each other as they could be; both above 0, in one unit.

    ``card``: the card of A, where the two have one each and change places. ``order``: which came first, "" when both
    ran at once.
    """

    a: float
    b: float
    card: Side = ""
    order: Literal["ab", "ba", ""] = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect as a share: 0.03 is 3 % more. ``low`` and ``high`` bound it at the level; None: nothing bounds it."""

    share: float
    low: float | None
    high: float | None
    p: float | None  # two-sided, against no effect

    @property
    def told(self) -> bool:
        """Whether the interval leaves out no effect."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Effects:
    """What the pairs come to; None where something did not vary.

    ``treatment``: B against A; ``card``: second card against first; ``period``: later against earlier within a pair.
    """

    n: int
    df: int
    noise: float | None  # standard deviation of a pair's difference, as a share; None without degrees of freedom
    treatment: Effect
    card: Effect | None
    period: Effect | None
    level: float = LEVEL


def effects(pairs: Sequence[Pair], level: float = LEVEL) -> Effects:
    """Estimate the effects. Raises ValueError for no pair at all, and for values that are not above 0 or not finite."""
    if not pairs:
        raise ValueError("no pairs")
    if not all(0 < value < math.inf for pair in pairs for value in (pair.a, pair.b)):
        raise ValueError("a value that is not above 0 has no ratio")
    differences = [math.log(pair.b / pair.a) for pair in pairs]
    columns = {"treatment": [1.0] * len(pairs)}
    # A on the first card means B on the second: the difference holds second - first, once.
    for name, signs in (
        ("card", [{"first": 1.0, "second": -1.0}.get(pair.card, 0.0) for pair in pairs]),
        ("period", [{"ab": 1.0, "ba": -1.0}.get(pair.order, 0.0) for pair in pairs]),
    ):
        if _adds(list(columns.values()), signs):
            columns[name] = signs
    found, spread, df = _least_squares(list(columns.values()), differences)
    made = {
        name: _effect(value, None if spread is None else spread[at], df, level)
        for at, (name, value) in enumerate(zip(columns, found, strict=True))
    }
    residual = _noise(list(columns.values()), found, differences, df)
    return Effects(len(pairs), df, residual, made["treatment"], made.get("card"), made.get("period"), level)


def _effect(value: float, error: float | None, df: int, level: float) -> Effect:
    if error is None:
        return Effect(math.expm1(value), None, None, None)
    reach = t_quantile((1 + level) / 2, df) * error
    exact = 0.0 if value else 1.0
    p = 2 * (1 - t_probability(abs(value) / error, df)) if error > 0 else exact
    return Effect(math.expm1(value), math.expm1(value - reach), math.expm1(value + reach), p)


def _adds(columns: list[list[float]], more: list[float]) -> bool:
    """Whether a column says something that the others do not: what is left of it after they are taken out."""
    rest = more
    for column in _orthogonal(columns):
        rest = _without(rest, column)
    return sum(value * value for value in rest) > 1e-9 * max(len(rest), 1)


def _orthogonal(columns: list[list[float]]) -> list[list[float]]:
    done: list[list[float]] = []
    for column in columns:
        rest = column
        for other in done:
            rest = _without(rest, other)
        done.append(rest)
    return done


def _without(column: list[float], other: list[float]) -> list[float]:
    share = sum(map(float.__mul__, column, other)) / sum(value * value for value in other)
    return [value - share * taken for value, taken in zip(column, other, strict=True)]


def _least_squares(columns: list[list[float]], y: list[float]) -> tuple[list[float], list[float] | None, int]:
    """Fit; return the coefficients, their standard errors (None without degrees of freedom), and these degrees."""
    from mpmath import fp  # noqa: PLC0415 - slow to import

    gram = fp.matrix([[sum(map(float.__mul__, one, two)) for two in columns] for one in columns])
    right = fp.matrix([sum(map(float.__mul__, column, y)) for column in columns])
    inverse = fp.inverse(gram)
    found = [float(value) for value in inverse * right]
    df = len(y) - len(columns)
    noise = _noise(columns, found, y, df)
    if noise is None:
        return found, None, df
    return found, [noise * math.sqrt(max(float(inverse[at, at]), 0.0)) for at in range(len(columns))], df


def _noise(columns: list[list[float]], found: list[float], y: list[float], df: int) -> float | None:
    if df < 1:
        return None
    fitted = [sum(map(float.__mul__, row, found)) for row in zip(*columns, strict=True)]
    return math.sqrt(sum((seen - made) ** 2 for seen, made in zip(y, fitted, strict=True)) / df)
