"""What the intervals promise, over thousands of simulated A/Bs. Seeded: the same numbers each time."""

# ruff: noqa: S311 - the same numbers each time is what is wanted

from __future__ import annotations

import math
import random
from functools import cache

import pytest

from ttstack.bench.ab.design import orders
from ttstack.bench.ab.effect import LEVEL, Effects, Pair, effects
from ttstack.bench.ab.power import detectable, pairs_for

RUNS = 2000
CARD = math.log(1.03)  # the second card is slower
NOISE = 0.02
TREATMENT = math.log(1.02)
SIDES = ("first", "second", "")


@cache
def at_most(runs: int, share: float, doubt: float = 1e-4) -> int:
    """Give the count that a share of so many independent runs stays at or below, but for ``doubt``."""
    below, count = 0.0, -1
    while below < 1 - doubt:
        count += 1
        choose = math.lgamma(runs + 1) - math.lgamma(count + 1) - math.lgamma(runs - count + 1)
        below += math.exp(choose + count * math.log(share) + (runs - count) * math.log1p(-share))
    return count


def swapped(n: int, rng: random.Random, treatment: float = 0.0, drift: float = 0.0, wild: float = 0.0) -> Effects:
    """Simulate an A/B whose arms run at once and change cards; ``wild``: share of pairs with ten times the noise."""
    pairs = []
    for at, first in enumerate(orders(n)):
        noise = rng.gauss(0, NOISE * (10 if rng.random() < wild else 1))
        d = treatment + (CARD if first else -CARD) + noise
        base = 1 + drift * at
        pairs.append(Pair(base, base * math.exp(d), SIDES[not first]))
    return effects(pairs)


def one_after_the_other(n: int, rng: random.Random, drift: float) -> Effects:
    """Simulate runs of one card, each slower than the one before."""
    pairs, run = [], 0
    for first in orders(n):
        early, late = (math.exp(drift * at + rng.gauss(0, NOISE)) for at in (run, run + 1))
        run += 2
        pairs.append(Pair(early, late, order="ab") if first else Pair(late, early, order="ba"))
    return effects(pairs)


def test_the_bound_is_that_of_the_binomial_distribution() -> None:
    assert at_most(10, 0.5, 0.02) == 8  # P(X <= 8) = 0.98926, P(X <= 7) = 0.94531
    assert (at_most(RUNS, 0.05), at_most(RUNS, 0.95)) == (138, 1934)


@pytest.mark.parametrize("n", range(3, 21))
def test_equal_arms_are_told_apart_no_more_often_than_stated(n: int) -> None:
    rng = random.Random(n)
    found = [swapped(n, rng, drift=0.01) for _ in range(RUNS)]
    wrong = sum(each.treatment.told for each in found)
    assert wrong <= at_most(RUNS, 1 - LEVEL)
    assert wrong >= RUNS - at_most(RUNS, LEVEL)  # nor is the interval wider than it says
    inside = sum(each.card.low <= math.expm1(CARD) <= each.card.high for each in found if each.card)
    assert RUNS - at_most(RUNS, 1 - LEVEL) <= inside <= at_most(RUNS, LEVEL)


@pytest.mark.parametrize("n", [3, 4, 6, 12, 20])
def test_the_interval_holds_the_true_effect_as_often_as_stated(n: int) -> None:
    rng = random.Random(100 + n)
    found = [swapped(n, rng, TREATMENT) for _ in range(RUNS)]
    inside = sum(each.treatment.low <= math.expm1(TREATMENT) <= each.treatment.high for each in found)
    assert RUNS - at_most(RUNS, 1 - LEVEL) <= inside <= at_most(RUNS, LEVEL)


def test_two_pairs_of_equal_cards_have_an_interval_and_one_swap_has_none() -> None:
    rng = random.Random(2)
    plain = [effects([Pair(1.0, math.exp(rng.gauss(0, NOISE))) for _ in range(2)]) for _ in range(RUNS)]
    assert sum(each.treatment.told for each in plain) <= at_most(RUNS, 1 - LEVEL)
    assert not any(swapped(2, rng, treatment=1.0).treatment.told for _ in range(50))


@pytest.mark.parametrize("n", [4, 8, 20])
def test_drift_between_runs_of_one_card_makes_no_difference(n: int) -> None:
    rng = random.Random(200 + n)
    found = [one_after_the_other(n, rng, drift=0.01) for _ in range(RUNS)]
    assert sum(each.treatment.told for each in found) <= at_most(RUNS, 1 - LEVEL)
    middle = sum(each.period.share for each in found if each.period) / RUNS
    assert middle == pytest.approx(math.expm1(0.01), abs=0.001)


@pytest.mark.parametrize("n", [4, 6, 10, 20])
def test_outliers_make_it_doubtful_not_wrong(n: int) -> None:
    rng = random.Random(300 + n)
    found = [swapped(n, rng, wild=0.1) for _ in range(RUNS)]
    assert sum(each.treatment.told for each in found) <= at_most(RUNS, 1 - LEVEL)


@pytest.mark.parametrize(("n", "share"), [(4, 0.766), (6, 0.791), (10, 0.799), (20, 0.800)])
def test_an_effect_of_the_size_that_is_promised_is_seen_as_often(n: int, share: float) -> None:
    """The shares are those of the noncentral t distribution at what ``detectable`` says."""
    effect = detectable(NOISE, n, 2)
    assert effect is not None
    rng = random.Random(400 + n)
    seen = sum(swapped(n, rng, math.log1p(effect)).treatment.told for _ in range(RUNS))
    assert RUNS - at_most(RUNS, 1 - share) <= seen <= at_most(RUNS, share)


def test_the_planned_pairs_see_the_effect_that_they_were_planned_for() -> None:
    n = pairs_for(0.02, NOISE, 2)
    assert n == 12  # 3.107 x 0.02 / sqrt(12) = 1.79 %; at 10 pairs it is 2.02 %
    rng = random.Random(500)
    seen = sum(swapped(n, rng, math.log(1.02)).treatment.told for _ in range(RUNS))
    assert seen >= RUNS - at_most(RUNS, 0.2)
