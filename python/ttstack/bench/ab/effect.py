"""From pairs of values to effects with intervals.

The unit of replication is the pair of boots, never the request: requests of one server share its boot, its cache and
its card. A pair's difference is that of the logarithms, so effects are ratios and no unit matters. It is explained by

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
ROUNDING = 1e-9
"""The least noise that is believed: below it a difference is one of how values were rounded, not of arms."""

Side = Literal["first", "second", ""]
Order = Literal["ab", "ba", ""]


@dataclass(frozen=True, slots=True)
class Pair:
    """One value of each arm, measured as near to each other as they could be; both above 0, in one unit.

    ``card``: the card of A, where the two have one each and change places. ``order``: which came first, "" when both
    ran at once.
    """

    a: float
    b: float
    card: Side = ""
    order: Order = ""


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
    ``mixed`` names those that cannot be told from another one, as when A was on the same card in every pair: the
    treatment then holds that of the cards as well.
    """

    n: int
    df: int
    noise: float | None  # standard deviation of a pair's difference, as a share; None without degrees of freedom
    treatment: Effect
    card: Effect | None
    period: Effect | None
    mixed: tuple[Literal["card", "period"], ...] = ()
    level: float = LEVEL


def effects(pairs: Sequence[Pair], level: float = LEVEL) -> Effects:
    """Estimate the effects. Raises ValueError for no pair at all, and for values that are not above 0 or not finite."""
    if not pairs:
        raise ValueError("no pairs")
    if not all(0 < value < math.inf for pair in pairs for value in (pair.a, pair.b)):
        raise ValueError("a value that is not above 0 has no ratio")
    # Not the logarithm of the ratio: the ratio of two values may be too large or too small for a number.
    differences = [math.log(pair.b) - math.log(pair.a) for pair in pairs]
    columns = {"treatment": [1.0] * len(pairs)}
    mixed: list[Literal["card", "period"]] = []
    for name, signs in (("card", [_CARD[pair.card] for pair in pairs]), ("period", [_ORDER[p.order] for p in pairs])):
        if _adds(list(columns.values()), signs):
            columns[name] = signs
        elif any(signs):
            mixed.append("card" if name == "card" else "period")
    found, errors, noise = _least_squares(list(columns.values()), differences)
    df = len(pairs) - len(columns)
    made = {name: _effect(value, error, df, level) for name, value, error in zip(columns, found, errors, strict=True)}
    return Effects(len(pairs), df, noise, made["treatment"], made.get("card"), made.get("period"), tuple(mixed), level)


def drift(pairs: Sequence[Pair], when: Sequence[float]) -> float:
    """Say by which share both arms change from one pair to the next; ``when``: the pairs' numbers. 0 for one pair.

    For people alone: it takes the same from both arms, whose difference it is no part of.
    """
    middle = math.fsum(when) / len(when)
    away = [at - middle for at in when]
    size = _product(away, away)
    levels = [(math.log(pair.a) + math.log(pair.b)) / 2 for pair in pairs]
    return math.expm1(_product(away, levels) / size) if size else 0.0


# A on the first card means B on the second: the difference holds second - first, once. So it is with the order.
_CARD: dict[Side, float] = {"first": 1.0, "second": -1.0, "": 0.0}
_ORDER: dict[Order, float] = {"ab": 1.0, "ba": -1.0, "": 0.0}


def _effect(value: float, error: float | None, df: int, level: float) -> Effect:
    if error is None:
        return Effect(math.expm1(value), None, None, None)
    reach = t_quantile((1 + level) / 2, df) * error
    p = 2 * (1 - t_probability(abs(value) / error, df))
    return Effect(math.expm1(value), math.expm1(value - reach), _more(value + reach), p)


def _more(value: float) -> float:
    """Give the share; with one degree of freedom an interval may reach beyond what a number holds."""
    return math.expm1(min(value, 700.0))


def _adds(columns: list[list[float]], more: list[float]) -> bool:
    """Whether a column says something that the others do not: what is left of it after they are taken out."""
    rest = more
    for column in _orthogonal(columns):
        rest = _without(rest, column)
    return _product(rest, rest) > ROUNDING * len(rest)


def _orthogonal(columns: list[list[float]]) -> list[list[float]]:
    done: list[list[float]] = []
    for column in columns:
        rest = column
        for other in done:
            rest = _without(rest, other)
        done.append(rest)
    return done


def _without(column: list[float], other: list[float]) -> list[float]:
    share = _product(column, other) / _product(other, other)
    return [value - share * taken for value, taken in zip(column, other, strict=True)]


def _product(one: list[float], two: list[float]) -> float:
    return math.fsum(map(float.__mul__, one, two))


def _least_squares(columns: list[list[float]], y: list[float]) -> tuple[list[float], list[float | None], float | None]:
    """Fit; return the coefficients, their standard errors and the noise; None for both without degrees of freedom."""
    inverse = _inverse([[_product(one, two) for two in columns] for one in columns])
    right = [_product(column, y) for column in columns]
    found = [_product(row, right) for row in inverse]
    df = len(y) - len(columns)
    if df < 1:
        return found, [None] * len(columns), None
    fitted = [_product(list(row), found) for row in zip(*columns, strict=True)]
    rest = [seen - made for seen, made in zip(y, fitted, strict=True)]
    noise = max(math.sqrt(_product(rest, rest) / df), ROUNDING)
    return found, [noise * math.sqrt(inverse[at][at]) for at in range(len(columns))], noise


def _inverse(matrix: list[list[float]]) -> list[list[float]]:
    """Invert a small positive definite matrix (Gauss and Jordan; such a one needs no exchange of rows)."""
    size = len(matrix)
    rows = [row + [float(at == other) for other in range(size)] for at, row in enumerate(matrix)]
    for at in range(size):
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(size):
            if other != at:
                share = rows[other][at]
                rows[other] = [value - share * pivot for value, pivot in zip(rows[other], rows[at], strict=True)]
    return [row[size:] for row in rows]
