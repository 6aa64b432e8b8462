from __future__ import annotations

import math

import pytest

from ttstack.bench.ab.power import MOST_PAIRS, detectable, pairs_for


def test_what_can_be_seen_by_hand() -> None:
    # t(6, 97.5 %) = 2.446912, t(6, 80 %) = 0.905703: (2.446912 + 0.905703) x 1 % / sqrt(8)
    assert detectable(0.01, 8, 2) == pytest.approx(math.expm1(0.0118533), rel=1e-4)


def test_with_no_degree_of_freedom_nothing_can_be_seen() -> None:
    assert detectable(0.01, 2, 2) is None
    assert detectable(0.01, 3, 2) is not None


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_planned_number_is_the_smallest_even_one(noise: float, columns: int) -> None:
    pairs = pairs_for(0.02, noise, columns)
    assert pairs is not None
    assert pairs % 2 == 0
    seen = detectable(noise, pairs, columns)
    assert seen is not None
    assert seen <= 0.02
    before = detectable(noise, pairs - 2, columns)
    assert before is None or before > 0.02


def test_what_no_number_of_pairs_can_show() -> None:
    assert pairs_for(1e-6, 0.5, 2) is None
    assert pairs_for(0.0, 0.01, 2) is None
    assert pairs_for(0.0001, 0.001, 2) == 788
    assert MOST_PAIRS == 1000


def test_more_noise_than_a_number_holds() -> None:
    seen = detectable(1e6, 4, 2)
    assert seen is not None
    assert math.isfinite(seen)
