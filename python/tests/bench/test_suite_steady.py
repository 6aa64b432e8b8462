from __future__ import annotations

import pytest
from suite_kit import result

from ttstack.bench.suites.steady import goodput_share, steady_window, tokens_within


def test_the_first_wave_and_the_end_are_dropped() -> None:
    # Two at a time. First wave: slow. Then pairs, and one at the end that runs alone.
    rows = [
        result(0, sent=0.0, ttft=5.0, tpot=0.1, tokens=11),  # until 6
        result(1, sent=0.0, ttft=6.0, tpot=0.1, tokens=11),  # until 7
        result(2, sent=6.0, ttft=1.0, tpot=0.1, tokens=11),  # until 8
        result(3, sent=7.0, ttft=1.0, tpot=0.1, tokens=11),  # until 9
        result(4, sent=8.0, ttft=1.0, tpot=0.1, tokens=11),  # until 10
        result(5, sent=9.0, ttft=1.0, tpot=0.1, tokens=11),  # until 11, alone since 10
    ]
    steady = steady_window(rows, 2)
    assert steady is not None
    assert (steady.begin, steady.end) == (7.0, 10.0)
    assert [one.number for one in steady.measured] == [2, 3, 4]
    # 2: the 10 after 7.0; 3 and 4: 11 each; 5: that at 10.0
    assert steady.tokens_per_s == pytest.approx((10 + 11 + 11 + 1) / 3)


def test_one_at_a_time_drops_the_first_request_alone() -> None:
    rows = [result(number, sent=float(number), ttft=0.5, tpot=0.1, tokens=6) for number in range(4)]
    steady = steady_window(rows, 1)
    assert steady is not None
    assert [one.number for one in steady.measured] == [1, 2, 3]
    assert steady.tokens_per_s == pytest.approx(6.0)


def test_there_is_no_window_without_a_second_wave() -> None:
    assert steady_window([], 2) is None
    assert steady_window([result(0), result(1)], 2) is None
    assert steady_window([result(5)], 2) is None, "the first wave is void"
    slow = [result(0, ttft=50.0), result(1, ttft=1.0), result(2, sent=2.0, ttft=1.0)]
    assert steady_window(slow, 2) is None, "one of the first wave outlives all others"


def test_tokens_are_counted_by_the_server_or_shared_out() -> None:
    bundles = result(sent=0.0, ttft=1.0, tpot=0.5, tokens=8, bundle=2)  # at 1.5, 2.5, 3.5, 4.5
    assert tokens_within(bundles, 1.5, 3.5) == 4
    blind = result(sent=0.0, ttft=1.0, tpot=0.5, tokens=8, bundle=2, counted=False)
    assert tokens_within(blind, 1.5, 3.5) == 4
    assert tokens_within(blind, 0.0, 9.0) == 8


def test_goodput_is_the_share_that_kept_both_limits() -> None:
    rows = [result(ttft=0.5, tpot=0.01), result(ttft=1.5, tpot=0.01), result(ttft=0.5, tpot=0.2), result(tokens=1)]
    assert goodput_share(rows, ttft_s=1.0, tpot_s=0.1) == 0.5
    assert goodput_share(rows, ttft_s=2.0, tpot_s=0.1) == 0.75
