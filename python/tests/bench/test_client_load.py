from __future__ import annotations

import asyncio
import gc
import socket
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import pytest
from reference_server import Server
from virtual_loop import run

from ttstack.bench.client import wire
from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.intake import Intake
from ttstack.bench.client.load import load, run_load, schedule, with_cache_hits
from ttstack.bench.client.prompts import PLAIN, fresh_prompt
from ttstack.bench.client.result import Taken
from ttstack.bench.client.stats import Watch, lag_of, no_collection
from ttstack.bench.client.types import Api, Ask, Closed, Lag, Limits, LoadResult, Open, Result, VoidReason
from ttstack.bench.client.wire import Wire
from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reference_server import Truth

ASK = Ask("reference", (101, 102), 4)
TAKES = 0.05 + 3 * 0.005  # s: one request of ASK at the reference server's pace
LIMITS = Limits(timeout_s=2.0)


async def loaded(
    asks: Iterable[Ask], pattern: Closed | Open, limits: Limits = LIMITS, mode: str = "pace"
) -> tuple[LoadResult, list[Truth], int]:
    async with Server() as server:
        found = await load(Endpoint.of(f"{server.url}/{mode}"), asks, pattern, limits)
        return found, server.log, server.connections


def sent(found: LoadResult) -> list[float]:
    return [result.sent for result in found.results if result.sent is not None]


def test_a_closed_loop_keeps_so_many_going() -> None:
    found, log, connections = run(loaded([ASK] * 10, Closed(4)))
    assert sent(found) == pytest.approx([0] * 4 + [TAKES] * 4 + [2 * TAKES] * 2, abs=1e-9)
    assert [result.number for result in found.results] == list(range(10))
    assert found.seconds == pytest.approx(3 * TAKES)
    assert connections == 4
    assert {result.scheduled for result in found.results} == {None}
    assert [result.ttft_scheduled_s for result in found.valid] == [None] * 10
    assert (found.requests, len(log), found.output_tokens) == (10, 10, 40)
    assert found.output_tokens_per_s == pytest.approx(40 / (3 * TAKES))


def test_an_open_loop_does_not_wait_for_answers() -> None:
    found, _, connections = run(loaded([ASK] * 5, Open(100, "constant")))
    assert sent(found) == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])
    assert [result.scheduled for result in found.results] == pytest.approx(sent(found))
    assert connections == 5
    assert [result.ttft_scheduled_s for result in found.results] == pytest.approx([0.05] * 5)
    assert [result.e2e_scheduled_s for result in found.results] == pytest.approx([TAKES] * 5)


def test_an_open_loop_counts_from_the_schedule_what_it_was_late() -> None:
    """The loop is held up for 0.1 s: requests that were due meanwhile go out late, and say so."""

    async def held_up() -> LoadResult:
        asyncio.get_running_loop().call_later(0.005, hold)
        return (await loaded([ASK] * 3, Open(50, "constant")))[0]

    def hold() -> None:
        asyncio.get_running_loop()._virtual.now += 0.1  # type: ignore[attr-defined]

    found = run(held_up())
    late = [result.late_s or 0 for result in found.results]
    assert late == pytest.approx([0, 0.085, 0.065])
    for result in found.results[1:]:
        assert result.ttft_scheduled_s == pytest.approx((result.ttft_s or 0) + (result.late_s or 0))
    assert found.lag.largest >= 0.05


def test_poisson_times_are_those_of_their_seed() -> None:
    first, again, other = (list(islice(schedule(Open(10, seed=seed)), 2000)) for seed in (1, 1, 2))
    assert first == again != other
    assert first[0] == 0
    gaps = [after - before for before, after in pairwise(first)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.1, rel=0.1)
    assert spread == pytest.approx(mean, rel=0.1), "exponential gaps have a spread like their mean"


def test_nothing_is_sent_after_the_duration() -> None:
    found, log, _ = run(loaded([ASK] * 10, Closed(1), replace(LIMITS, duration_s=1.5 * TAKES)))
    assert (found.requests, len(log), len(found.valid)) == (2, 2, 2)
    found, log, _ = run(loaded([ASK] * 10, Open(10, "constant"), replace(LIMITS, duration_s=0.25)))
    assert (found.requests, len(log)) == (3, 3)


def test_a_kept_connection_that_was_closed_is_replaced_and_the_request_timed_anew() -> None:
    found, log, connections = run(loaded([ASK] * 3, Closed(1), mode="closes"))
    assert [result.void for result in found.results] == [None] * 3
    assert connections == 3
    assert [result.ttft_s for result in found.results] == pytest.approx([0.05] * 3)
    assert len(log) == 3
    assert all(result.resent <= 1 for result in found.results)


def test_a_request_that_was_begun_to_be_answered_is_not_sent_again() -> None:
    async def work() -> LoadResult:
        async with Server() as server:
            server.again = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\n: hm"
            return await load(Endpoint.of(f"{server.url}/once"), [ASK] * 2, Closed(1), LIMITS)

    found = run(work())
    assert [result.resent for result in found.results] == [0, 0]
    assert found.voids == {VoidReason.DROPPED: 1}


def test_a_connection_whose_answer_never_ended_is_not_used_again() -> None:
    found, _, connections = run(loaded([ASK] * 2, Closed(1), mode="silent"))
    assert found.voids == {VoidReason.TIMEOUT: 2}
    assert connections == 2


def test_a_connection_that_says_something_unasked_is_not_used_again() -> None:
    async def work() -> tuple[LoadResult, int]:
        async with Server() as server:
            asyncio.get_running_loop().call_later(0.3, lambda: server.say(b"HTTP/1.1 408 Request Timeout\r\n\r\n"))
            asks = [ASK] * 2
            endpoint = Endpoint.of(f"{server.url}/pace")
            return await load(endpoint, asks, Open(2, "constant", connections=1), LIMITS), server.connections

    found, connections = run(work())
    assert [result.void for result in found.results] == [None, None]
    assert connections == 2


def test_a_new_connection_without_an_answer_is_not_asked_again() -> None:
    found, log, _ = run(loaded([ASK], Closed(1), mode="mute"))
    assert found.voids == {VoidReason.DROPPED: 1}
    assert (len(log), found.results[0].resent) == (1, 0)


def test_results_are_handed_over_when_somebody_wants_them_soon() -> None:
    heard: list[Result] = []

    async def work() -> LoadResult:
        async with Server() as server:
            asks = (replace(ASK, label=str(number)) for number in range(6))
            return await load(Endpoint.of(f"{server.url}/pace"), asks, Closed(2), LIMITS, heard.append)

    found = run(work())
    assert found.results == ()
    assert (found.requests, found.voids) == (6, {})
    assert sorted(result.ask.label for result in heard) == list("012345")
    assert [result.ttft_s for result in heard] == pytest.approx([0.05] * 6)


def test_faults_of_the_caller_end_the_load_as_they_are() -> None:
    with pytest.raises(BenchError, match="at least one token id"):
        run(loaded(iter([ASK, replace(ASK, prompt=()), ASK]), Closed(2)))
    with pytest.raises(BenchError, match="at least one token id"):
        run(loaded(iter([ASK, replace(ASK, prompt=())]), Open(100, "constant")))

    def refuse(result: Result) -> None:
        raise KeyError(result.number)

    async def work() -> LoadResult:
        async with Server() as server:
            return await load(Endpoint.of(f"{server.url}/pace"), [ASK] * 50, Closed(1), LIMITS, refuse)

    with pytest.raises(KeyError):
        run(work())


def test_bytes_that_pile_up_are_read_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.bench.client.intake.MOST_HELD", 1000)
    found, _, _ = run(loaded([ASK] * 6, Closed(2)))
    assert [result.number for result in found.results] == list(range(6))
    assert len(found.valid) == 6

    async def left(bytes_read: int) -> int:
        intake = Intake("", None)
        read = Wire()
        read.took(bytes_read)
        intake.take(Taken(ASK, 0, 0.0, read))
        await asyncio.sleep(1)
        return len(intake._over)

    assert (run(left(900)), run(left(1100))) == (1, 0)


def test_a_server_that_is_not_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BenchError, match=r"cannot connect to http://127.0.0.1:.*refused") as told:
        run_load(Endpoint("127.0.0.1", port), [ASK], Closed(2))
    assert told.value.reason == "connect"
    with pytest.raises(BenchError, match="at least one request"):
        run_load(Endpoint("127.0.0.1", port), [ASK], Closed(0))


def test_a_server_that_goes_away_voids_what_comes_after() -> None:
    async def work() -> LoadResult:
        async with Server() as server:
            loop = asyncio.get_running_loop()
            loop.call_later(TAKES / 2, server._listener.close)
            return await load(Endpoint.of(f"{server.url}/says_close"), [ASK] * 2, Closed(1), LIMITS)

    found = run(work())
    assert [result.void and result.void.reason for result in found.results] == [None, VoidReason.CONNECT]
    assert found.results[1].sent is None
    assert found.against == ("1 of 2 void: connect",)


def test_too_large_an_answer_is_void(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LARGEST", 1000)
    found, _, _ = run(loaded([ASK], Closed(1)))
    assert found.voids == {VoidReason.TOO_LARGE: 1}


def test_asks_that_make_no_request_are_errors() -> None:
    for ask in (
        replace(ASK, prompt=()),
        replace(ASK, api=Api.CHAT),
        replace(ASK, api=Api.CHAT, prompt=({"role": "user", "content": "a"}, 5)),
        replace(ASK, prompt=({"role": "user", "content": "a"}, 5)),
        replace(ASK, extra={"a": float("nan")}),
    ):
        with pytest.raises(BenchError) as told:
            run(loaded([ask], Closed(1)))
        assert told.value.reason == "request"


def test_a_hit_of_the_cache_is_no_fault_where_it_is_what_is_measured() -> None:
    found, _, _ = run(loaded([replace(ASK, may_hit_cache=True), ASK], Closed(1), mode="cached"))
    assert [result.void and result.void.reason for result in found.results] == [None, VoidReason.CACHE_HIT]
    assert not found.may_hit_cache


def test_the_servers_own_count_of_cache_hits_voids_what_told_nothing() -> None:
    found, _, _ = run(loaded([ASK] * 2, Closed(1)))
    told = with_cache_hits(found, 64)
    assert told.voids == {}, "each said that it took nothing from a cache"
    assert told.against == ("64 prompt tokens came from a prefix cache meanwhile",)
    silent = replace(
        found, results=tuple(replace(r, usage=r.usage and replace(r.usage, cached=None)) for r in found.results)
    )
    assert with_cache_hits(silent, 0).voids == {}
    assert with_cache_hits(silent, 64).voids == {VoidReason.CACHE_HIT: 2}
    allowed = tuple(replace(r, ask=replace(r.ask, may_hit_cache=True)) for r in silent.results)
    free = with_cache_hits(replace(silent, results=allowed, may_hit_cache=True), 64)
    assert (free.voids, free.against, free.cache_hits) == ({}, (), 64)


def test_a_busy_client_speaks_against_its_own_numbers() -> None:
    found, _, _ = run(loaded([ASK], Closed(1)))
    fine = replace(found, cpu_s=0.4 * found.seconds, lag=Lag(0, 0.004, 1, 9))
    assert fine.against == ()
    assert replace(fine, cpu_s=0.6 * found.seconds).against == ("the client used 60% of a core; at most 50% may be",)
    assert replace(fine, lag=Lag(0, 0.006, 1, 9)).against == ("the client's loop was 6.0 ms late (p99)",)


def test_a_loop_that_does_not_come_back_is_late_all_the_same() -> None:
    async def work() -> Lag:
        watch = Watch(asyncio.get_running_loop())
        asyncio.get_running_loop()._virtual.now += 1.0  # type: ignore[attr-defined]
        return watch.stop()[0]

    assert run(work()) == Lag(*[pytest.approx(0.95)] * 3, 1)


def test_lag_is_what_was_seen() -> None:
    assert lag_of([0.3, 0.1, 0.2]) == Lag(0.2, 0.3, 0.3, 3)
    assert lag_of([number / 1000 for number in range(200)]) == Lag(0.099, 0.197, 0.199, 200)


def test_a_real_loop_measures_and_leaves_the_collector_as_it_was() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    gc.enable()
    with no_collection():
        assert not gc.isenabled()
    with pytest.raises(BenchError):
        run_load(Endpoint("127.0.0.1", port), [ASK], Closed(1), Limits(connect_s=1))
    assert gc.isenabled()


def test_prompts_are_fresh_exact_and_the_same_for_the_same_seed() -> None:
    one = fresh_prompt(1000, "run-1", 0)
    assert one == fresh_prompt(1000, "run-1", 0)
    assert len(one) == 1000
    assert set(one) <= set(PLAIN)
    others = [fresh_prompt(1000, "run-1", 1), fresh_prompt(1000, "run-2", 0), fresh_prompt(999, "run-1", 0)]
    assert all(other[:16] != one[:16] for other in others)
