from __future__ import annotations

import random

import pytest

from ttstack.bench.suites.drift import find_drift
from ttstack.bench.suites.fit import fit_line


def test_a_line_is_found_again_with_its_residuals() -> None:
    line = fit_line([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0])
    assert line is not None
    assert (line.fixed, line.slope) == pytest.approx((3.0, 2.0))
    assert line.residuals == pytest.approx((0, 0, 0, 0))
    assert line.slope_reach == pytest.approx(0.0)


def test_the_interval_is_students() -> None:
    # By hand: slope 0.9, residuals .2 -.7 .4 .5 -.4, s^2 = 1.10 / 3, Sxx = 10, t(0.975, 3) = 3.182446.
    line = fit_line([1, 2, 3, 4, 5], [2.0, 2.0, 4.0, 5.0, 5.0])
    assert line is not None
    assert (line.fixed, line.slope) == pytest.approx((0.9, 0.9))
    assert line.residuals == pytest.approx((0.2, -0.7, 0.4, 0.5, -0.4))
    assert line.slope_reach == pytest.approx(3.182446 * (1.10 / 3 / 10) ** 0.5, rel=1e-6)
    assert line.fixed_reach == pytest.approx(3.182446 * (1.10 / 3 * (1 / 5 + 9 / 10)) ** 0.5, rel=1e-6)


def test_two_points_say_nothing_of_the_noise_and_one_says_nothing() -> None:
    line = fit_line([1, 2], [1.0, 3.0])
    assert line is not None
    assert (line.slope, line.slope_reach, line.fixed_reach) == (2.0, None, None)
    assert fit_line([1, 1], [1.0, 3.0]) is None
    assert fit_line([], []) is None


def _drifting(share: float, seed: int, count: int = 400) -> tuple[list[float], list[float], list[int]]:
    draw = random.Random(seed)  # noqa: S311 - no secret
    at = [float(number) for number in range(count)]
    kinds = [draw.choice([128, 4096]) for _ in at]
    pace = {128: 10.0, 4096: 20.0}
    values = [
        pace[kind] * (1 + share * moment / count) * draw.gauss(1, 0.02) for moment, kind in zip(at, kinds, strict=True)
    ]
    return at, values, kinds


def test_a_drift_is_seen_through_the_mixture() -> None:
    drift = find_drift(*_drifting(0.2, seed=1), bins=20)
    assert drift is not None
    assert drift.low < 0.2 / 1.1 < drift.high, "a share of the mean, which is 10 % above the beginning"
    assert drift.low > 0.1
    assert not drift.within(0.05)


def test_another_mixture_is_no_drift() -> None:
    at = [float(number) for number in range(400)]
    kinds = [128 if number < 200 else 4096 for number in range(400)]
    values = [{128: 10.0, 4096: 20.0}[kind] for kind in kinds]
    drift = find_drift(at, values, kinds, bins=20)
    assert drift is not None
    assert drift.share == pytest.approx(0.0)
    assert drift.within(0.001)


def test_the_interval_covers_what_is_there_as_often_as_it_says() -> None:
    found = [find_drift(*_drifting(0.0, seed, count=100), bins=10) for seed in range(400)]
    covered = sum(1 for drift in found if drift is not None and drift.low <= 0 <= drift.high)
    assert 0.92 <= covered / 400 <= 0.98  # 95 % within three standard errors of 400 draws


def test_too_little_is_not_told() -> None:
    assert find_drift([], [], [], 20) is None
    assert find_drift([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [1, 1, 1], 20) is None
    assert find_drift([1.0] * 50, [1.0] * 50, [1] * 50, 20) is None
    assert find_drift([1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5, [1] * 5, 20) is None
