from __future__ import annotations

import math

import pytest

from ttstack.bench.ab.effect import Effect, Pair, effects

SWAP = ("first", "second", "second", "first")
ORDERS = ("ab", "ba", "ba", "ab")


def test_two_pairs_of_one_swap_by_hand() -> None:
    # T = ((A0 - B1) + (A1 - B0)) / 2 and C = ((A0 - B1) - (A1 - B0)) / 2, of logarithms, with B - A here
    found = effects([Pair(1.0, 1.10, "first"), Pair(1.0, 1.04, "second")])
    one, two = math.log(1.10), math.log(1.04)
    assert found.treatment.share == pytest.approx(math.expm1((one + two) / 2))
    assert found.card is not None
    assert found.card.share == pytest.approx(math.expm1((one - two) / 2))
    # one swap can never be significant: nothing bounds it
    assert (found.df, found.noise, found.treatment.low, found.treatment.p) == (0, None, None, None)
    assert not found.treatment.told


def test_the_interval_of_plain_pairs_is_the_paired_t_test() -> None:
    # differences of logarithms 0.01, 0.02, 0.03, 0.04: mean 0.025, sd 0.012910, error 0.0064550, t(3, 97.5 %) 3.18245
    found = effects([Pair(2.0, 2.0 * math.exp(d)) for d in (0.01, 0.02, 0.03, 0.04)])
    assert found.noise == pytest.approx(0.0129099, rel=1e-5)
    assert found.treatment.low == pytest.approx(math.expm1(0.025 - 3.182446 * 0.0064550), rel=1e-4)
    assert found.treatment.high == pytest.approx(math.expm1(0.025 + 3.182446 * 0.0064550), rel=1e-4)
    assert found.treatment.p == pytest.approx(0.030466, rel=1e-4)  # t = 3.87298, df = 3
    assert found.treatment.told
    assert (found.card, found.period, found.mixed) == (None, None, ())


def test_the_unit_does_not_matter() -> None:
    seconds = [Pair(1.0, 1.1, "first"), Pair(1.2, 1.25, "second"), Pair(0.9, 1.0, "second"), Pair(1.1, 1.2, "first")]
    other = [Pair(pair.a * 1000, pair.b * 1000, pair.card) for pair in seconds]
    assert effects(seconds).treatment.share == pytest.approx(effects(other).treatment.share)


def test_drift_and_a_slower_card_are_no_difference() -> None:
    """1 % of drift from run to run, a second card that is 3 % slower, A equal to B."""
    noise = (0.001, -0.001, 0.0005, -0.0005)
    pairs = []
    for run, (card, more) in enumerate(zip(SWAP, noise, strict=True)):
        base = 0.5 * 1.01**run  # both at once: what drifts, drifts for both
        a, b = (base, base * 1.03) if card == "first" else (base * 1.03, base)
        pairs.append(Pair(a, b * (1 + more), card))
    found = effects(pairs)
    assert not found.treatment.told
    assert found.treatment.share == pytest.approx(0, abs=0.001)
    assert found.card is not None
    assert found.card.share == pytest.approx(0.03, abs=0.001)
    assert found.card.told


def test_drift_from_run_to_run_is_a_period_effect() -> None:
    values = [0.5 * 1.01**run for run in range(8)]
    pairs = []
    for at, order in enumerate(ORDERS):
        first, second = values[2 * at], values[2 * at + 1]
        pairs.append(Pair(first, second, order=order) if order == "ab" else Pair(second, first, order=order))
    found = effects(pairs)
    assert found.treatment.share == pytest.approx(0, abs=1e-9)
    assert not found.treatment.told  # also where rounding leaves no noise at all
    assert found.period is not None
    assert found.period.share == pytest.approx(0.01)


def test_without_the_card_the_same_values_would_be_noise() -> None:
    pairs = [Pair(1.0, 1.03, "first"), Pair(1.03, 1.0, "second")] * 2
    assert effects(pairs).noise == pytest.approx(0, abs=1e-8)
    assert effects([Pair(pair.a, pair.b) for pair in pairs]).noise == pytest.approx(0.034, abs=0.001)


@pytest.mark.parametrize(
    ("pairs", "mixed"),
    [
        ([Pair(1.0, 1.1, "first")] * 3, ("card",)),
        ([Pair(1.0, 1.1, order="ba")] * 3, ("period",)),
        ([Pair(1.0, 1.1, "first", "ab"), Pair(1.0, 1.1, "second", "ba")], ("period",)),
        ([Pair(1.0, 1.1, "first"), Pair(1.0, 1.1, "second")], ()),
    ],
)
def test_what_cannot_be_told_apart_is_named(pairs: list[Pair], mixed: tuple[str, ...]) -> None:
    found = effects(pairs)
    assert found.mixed == mixed
    assert found.treatment.share == pytest.approx(0.1)


def test_card_and_order_are_told_apart_when_both_vary() -> None:
    truth = {"treatment": 0.05, "card": 0.03, "period": 0.01}
    pairs = []
    for card, order in (("first", "ab"), ("second", "ab"), ("second", "ba"), ("first", "ba")):
        d = math.log(1.05) + math.log(1.03) * (1 if card == "first" else -1)
        d += math.log(1.01) * (1 if order == "ab" else -1)
        pairs.append(Pair(1.0, math.exp(d), card, order))
    found = effects(pairs)
    for name, share in truth.items():
        assert getattr(found, name).share == pytest.approx(share)
    assert found.df == 1


def test_equal_values_are_no_difference() -> None:
    found = effects([Pair(1.0, 1.0), Pair(2.0, 2.0), Pair(3.0, 3.0)])
    assert (found.treatment.share, found.treatment.p, found.treatment.told) == (0.0, 1.0, False)


def test_extreme_values_have_an_interval() -> None:
    found = effects([Pair(1e-300, 1e300), Pair(1e300, 1e-300)])
    assert found.treatment.high is not None
    assert math.isfinite(found.treatment.high)
    assert found.treatment.low == -1.0


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_what_has_no_ratio_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        effects([Pair(1.0, value)])
    with pytest.raises(ValueError, match="no pairs"):
        effects([])


def test_an_interval_that_ends_at_nothing_does_not_tell() -> None:
    assert not Effect(0.1, 0.0, 0.2, 0.05).told
    assert Effect(-0.1, -0.2, -0.01, 0.04).told
