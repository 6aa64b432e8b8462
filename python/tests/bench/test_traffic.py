"""What a server is doing, from its counters: never a negative or a huge number, whatever happens to it."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.bench.traffic import History, Traffic

PAGE = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} 3.0
vllm:num_requests_running{{engine="1",model_name="m"}} 4.0
vllm:num_requests_waiting{{engine="0",model_name="m"}} 1.0
vllm:num_requests_waiting{{engine="1",model_name="m"}} 0.0
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.25
vllm:kv_cache_usage_perc{{engine="1",model_name="m"}} 0.75
vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} {queries}
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {hits}
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="0",model_name="m"}} {prompt}
vllm:generation_tokens_total{{engine="0",model_name="m"}} {generation}
vllm:generation_tokens_total{{engine="1",model_name="m"}} {generation}
vllm:generation_tokens_created{{engine="0",model_name="m"}} {born}
vllm:request_generation_tokens_bucket{{engine="0",le="1.0",model_name="m"}} 900000
vllm:time_to_first_token_seconds_bucket{{engine="0",le="0.5",model_name="m"}} {fast}
vllm:time_to_first_token_seconds_bucket{{engine="0",le="1.0",model_name="m"}} {count}
vllm:time_to_first_token_seconds_bucket{{engine="0",le="+Inf",model_name="m"}} {count}
vllm:inter_token_latency_seconds_count{{engine="0",model_name="m"}} {count}
vllm:inter_token_latency_seconds_sum{{engine="0",model_name="m"}} {between}
"""
NOTHING = {"queries": 0, "hits": 0, "prompt": 0, "generation": 0, "born": 1.7e9, "fast": 0, "count": 0, "between": 0}


def page(**values: float) -> str:
    return PAGE.format(**{**NOTHING, **values})


def test_gauges_at_once_and_rates_from_the_second_reading_on() -> None:
    history = History()
    first = history.note(100.0, page(prompt=5000, generation=700))
    assert (first.running, first.waiting, first.kv_use) == (7, 1, 0.75)
    assert (first.prompt_tokens, first.generation_tokens) == (5000, 1400)
    assert first.prompt_tokens_per_s is first.generation_tokens_per_s is first.first_token_s is None
    second = history.note(102.0, page(prompt=6000, generation=900, queries=400, hits=100, fast=0, count=8, between=0.4))
    assert second.prompt_tokens_per_s == 500
    assert second.generation_tokens_per_s == 200
    assert second.prefix_hits == 0.25
    assert second.first_token_s == 0.75
    assert second.between_tokens_s == pytest.approx(0.05)


def test_names_of_older_servers() -> None:
    old = (
        "vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_queries_total {0}\nvllm:gpu_prefix_cache_hits_total {1}\n"
    )
    old += "vllm:time_per_output_token_seconds_count {0}\nvllm:time_per_output_token_seconds_sum {1}\n"
    history = History()
    assert history.note(1, old.format(0, 0)).kv_use == 0.5
    now = history.note(2, old.format(10, 1))
    assert now.prefix_hits == now.between_tokens_s == 0.1


def test_a_page_of_another_program_tells_nothing() -> None:
    history = History()
    history.note(1, "llamacpp:tokens_predicted_total 5\n")
    assert history.note(2, "llamacpp:tokens_predicted_total 6\n") == Traffic()


@settings(deadline=None)
@given(st.lists(st.sampled_from(["0", "1", "5e-324", "1e308", "1.7e308", "Inf", "NaN", "-1", "-1e308"]), min_size=4))
def test_what_is_told_is_a_number_whatever_the_server_writes(values: list[str]) -> None:
    history = History()
    for at, value in enumerate(values):
        told = history.note(at / 1000, re.sub(r"\{[a-z]+\}$", value, PAGE, flags=re.MULTILINE).format())
        assert all(number is None or math.isfinite(number) for number in dataclasses.astuple(told))


def test_after_a_restart_the_next_reading_tells_again() -> None:
    history = History()
    history.note(1, page(generation=10_000, count=50, fast=50))
    history.note(2, page(generation=10_500, count=60, fast=60))
    fallen = history.note(3, page(generation=20, count=1))
    assert fallen.generation_tokens_per_s is fallen.prompt_tokens_per_s is fallen.first_token_s is None
    after = history.note(4, page(generation=70, count=3))
    assert after.generation_tokens_per_s == 100
    assert after.first_token_s == 0.75  # of the two that the new one served, not of those before


def test_a_restart_that_counted_further_is_seen_by_its_birth() -> None:
    history = History()
    history.note(1, page(generation=10))
    assert history.note(2, page(generation=900_000, born=1.8e9)).generation_tokens_per_s is None
    assert history.note(3, page(generation=900_001, born=1.8e9)).generation_tokens_per_s == 2
    history = History()
    history.note(1, "vllm:generation_tokens_total 1\nprocess_start_time_seconds 5\n")
    assert (
        history.note(2, "vllm:generation_tokens_total 9\nprocess_start_time_seconds 6\n").generation_tokens_per_s
        is None
    )


def test_another_model_is_another_server() -> None:
    history = History()
    history.note(1, page(generation=10))
    assert history.note(2, page(generation=900_000).replace('"m"', '"other"')).generation_tokens_per_s is None


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    history = History()
    history.note(5, page(generation=10))
    assert history.note(5, page(generation=20)).generation_tokens_per_s is None
    assert history.note(4, page(generation=30)).generation_tokens_per_s is None


def test_what_is_told_of_requests_is_of_the_last_minute() -> None:
    history = History()
    for second in range(200):
        slow = max(0, second - 100)
        told = history.note(second, page(fast=min(second, 100), count=min(second, 100) + slow))
        if second == 100:
            assert told.first_token_s == 0.25
    assert told.first_token_s == 0.75


def test_readings_that_lie_far_apart_give_rates_too() -> None:
    history = History()
    history.note(0, page(generation=0))
    told = history.note(600, page(generation=3000, count=4))
    assert told.generation_tokens_per_s == 10
    assert told.first_token_s == 0.75


def test_many_readings_are_not_all_kept() -> None:
    history = History()
    for tenth in range(1000):
        history.note(tenth / 10, page(generation=tenth))
    assert len(history._window) <= 62


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.05, 100), st.integers(0, 1000), st.booleans(), st.booleans()), min_size=2, max_size=30
    )
)
def test_no_rate_is_negative_or_beyond_what_was_served(steps: list[tuple[float, int, bool, bool]]) -> None:
    """Servers that serve at most 1000 tokens between readings, restart and lose their answers at any time."""
    history, now, served, pending = History(), 0.0, 0, 0.0
    since = 0
    for seconds, tokens, restart, lost in steps:
        now, pending = now + seconds, pending + seconds
        served = tokens if restart else served + tokens
        since += tokens
        if lost:
            continue
        rate = history.note(now, f'vllm:generation_tokens_total{{engine="0"}} {served}\n').generation_tokens_per_s
        assert rate is None or -1e-9 <= rate <= since / pending * (1 + 1e-9)
        pending, since = 0.0, 0
