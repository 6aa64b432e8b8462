from __future__ import annotations

import pytest

from ttstack.bench.ab.student import t_probability, t_quantile

# Two-sided 95 % and 99 % points as printed in any table of the t distribution (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
TABLE = {
    1: (12.706, 63.657),
    2: (4.303, 9.925),
    3: (3.182, 5.841),
    4: (2.776, 4.604),
    5: (2.571, 4.032),
    6: (2.447, 3.707),
    8: (2.306, 3.355),
    10: (2.228, 3.169),
    15: (2.131, 2.947),
    18: (2.101, 2.878),
    30: (2.042, 2.750),
    60: (2.000, 2.660),
    100: (1.984, 2.626),
}


@pytest.mark.parametrize("df", TABLE)
def test_quantiles_are_those_of_the_tables(df: int) -> None:
    assert (round(t_quantile(0.975, df), 3), round(t_quantile(0.995, df), 3)) == TABLE[df]


@pytest.mark.parametrize("df", [1, 2, 3, 7, 18, 199])
def test_probabilities_are_those_of_another_formula(df: int) -> None:
    mpmath = pytest.importorskip("mpmath")
    for t in (-40.0, -3.0, -0.5, 0.0, 0.01, 1.0, 2.5, 9.0):
        # Abramowitz and Stegun 26.7.1, by way of the incomplete beta function
        tail = mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
        assert t_probability(t, df) == pytest.approx(float(1 - tail if t > 0 else tail), abs=1e-12)


@pytest.mark.parametrize("df", [1, 2, 5, 30])
def test_a_quantile_is_the_inverse_of_the_probability(df: int) -> None:
    for probability in (0.001, 0.3, 0.5, 0.8, 0.9999):
        assert t_probability(t_quantile(probability, df), df) == pytest.approx(probability, rel=1e-9)
    assert t_quantile(0.2, df) == -t_quantile(0.8, df)


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_probability(1.0, 0)
    for probability in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="no probability"):
            t_quantile(probability, 3)
