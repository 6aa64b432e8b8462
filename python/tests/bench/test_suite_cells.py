from __future__ import annotations

import pytest
from suite_kit import BUSY, load_of, result

from ttstack.bench.client.types import Closed, VoidReason
from ttstack.bench.suites.cells import BUNDLED, cell_of, request_values, unmeasured_cell, void_cell
from ttstack.bench.suites.server_times import prefill_mean, server_values


def test_a_cell_has_the_raw_values_and_what_they_come_to() -> None:
    rows = [result(0, ttft=0.5, tpot=0.02, prompt=100), result(1, ttft=0.25, tpot=0.04, prompt=100)]
    load = load_of(rows, Closed(1))
    cell = cell_of("b1", {"concurrency": 1}, load, load.valid)
    assert (cell.valid, cell.requests, cell.voids, cell.notes) == (True, 2, {}, ())
    assert cell.values["ttft_s"] == (0.5, 0.25)
    assert cell.values["pp_tokens_per_s"] == (200.0, 400.0)
    assert cell.values["tg_ms_per_token"] == pytest.approx((20.0, 40.0))
    assert cell.values["e2e_s"] == pytest.approx((0.56, 0.37))
    assert cell.values["largest_gap_s"] == pytest.approx((0.02, 0.04))
    assert cell.stats["ttft_s"].n == 2
    assert cell.stats["ttft_s"].mean == 0.375
    assert cell.client is not None
    assert cell.client.seconds == 10.0


def test_one_void_request_makes_the_cell_void_and_its_code_is_the_reason() -> None:
    rows = [result(0, ttft=0.5), result(1, ttft=9.0, void=VoidReason.SERVER_ERROR), result(2, ttft=0.5)]
    load = load_of(rows, Closed(1))
    cell = cell_of("b1", {}, load, load.valid)
    assert not cell.valid
    assert cell.reasons == ("1 of 3 void: server_error",)
    assert cell.voids == {"server_error": 1}
    assert cell.values["ttft_s"] == (0.5, 0.5), "its times are in no value"


def test_a_busy_client_makes_the_cell_void() -> None:
    late, hungry = load_of([result()], Closed(1), lag=BUSY), load_of([result()], Closed(1), cpu_s=6.0)
    assert "50.0 ms late" in cell_of("c", {}, late, late.valid).reasons[0]
    assert "60% of a core" in cell_of("c", {}, hungry, hungry.valid).reasons[0]


def test_a_cell_of_no_request_is_void() -> None:
    assert cell_of("c", {}, load_of([], Closed(1)), ()).reasons == ("no request was measured",)
    assert void_cell("c", {}, "gone", 3, "connect").voids == {"connect": 3}
    left = unmeasured_cell("c", {}, "too long")
    assert (left.valid, left.requests, left.notes) == (True, 0, ("not measured: too long",))


def test_a_sample_that_one_request_lacks_is_left_out_for_all() -> None:
    values = request_values([result(0, tokens=4), result(1, tokens=1)])
    assert set(values) == {"ttft_s", "e2e_s", "pp_tokens_per_s"}


def test_answers_that_come_all_at_once_make_the_cell_void() -> None:
    load = load_of([result(0, tokens=4), result(1, tokens=4, bundle=4)], Closed(1))
    cell = cell_of("c", {}, load, load.valid)
    assert cell.reasons == ("1 of 2 answers came all at once: no time per token can be told",)
    short = load_of([result(tokens=1)], Closed(1))
    assert cell_of("c", {}, short, short.valid).valid, "one token has no time after it"


def test_a_server_that_bundles_and_does_not_count_is_told() -> None:
    load = load_of([result(counted=False, bundle=2)], Closed(1))
    assert cell_of("c", {}, load, load.valid).notes == (BUNDLED,)


def test_the_servers_own_times_stand_beside_ours() -> None:
    llama = {"prompt_ms": 500.0, "predicted_n": 5, "predicted_ms": 80.0, "cache_n": 0}
    vllm = {"time_to_first_token_ms": 520.0, "queue_time_ms": 20.0, "mean_itl_ms": 7.0, "odd": True}
    assert server_values([result(server=llama)]) == {"prefill_s": (0.5,), "tg_ms_per_token": (20.0,)}
    assert server_values([result(server=vllm)]) == {"prefill_s": (0.5,), "queue_s": (0.02,), "tg_ms_per_token": (7.0,)}
    assert server_values([result(server=llama), result()]) == {}, "only where each request has it"
    assert server_values([result(server={"prompt_ms": "fast"})]) == {}


def test_the_servers_counter_is_used_only_for_our_own_requests() -> None:
    assert prefill_mean((1.0, 10.0), (3.0, 14.0), 4) == {"prefill_mean_s": (0.5,)}
    assert prefill_mean((1.0, 10.0), (3.0, 15.0), 4) == {}, "somebody else asked, too"
    assert prefill_mean(None, (3.0, 14.0), 4) == {}
    assert prefill_mean((1.0, 10.0), (1.0, 10.0), 0) == {}
