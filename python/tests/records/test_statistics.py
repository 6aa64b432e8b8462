"""What a record says of raw values."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttstack.records.statistics import percentile, summarise

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(VALUES)
def test_a_sample_is_described_by_plain_formulas(values: list[float]) -> None:
    found = summarise(values)
    assert (found.n, found.low, found.high) == (len(values), min(values), max(values))
    assert found.median == statistics.median(values)
    assert found.mean == pytest.approx(sum(values) / len(values), rel=1e-9, abs=1e-6)
    assert (found.sd is None) == (len(values) == 1)


@given(VALUES, st.integers(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], rank: int) -> None:
    found = percentile(values, rank)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= len(values) * rank
    assert sum(value < found for value in values) * 100 < len(values) * rank


@pytest.mark.parametrize(
    ("n", "told"),
    [(1, []), (49, []), (50, ["p90"]), (99, ["p90"]), (100, ["p90", "p95"]), (500, ["p90", "p95", "p99"])],
)
def test_a_percentile_is_told_only_where_n_allows_it(n: int, told: list[str]) -> None:
    assert list(summarise(list(map(float, range(n)))).percentiles) == told


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        summarise([])
