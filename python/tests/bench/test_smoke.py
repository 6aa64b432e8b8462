from __future__ import annotations

import pytest
from bench_kit import MAX_LEN, serving

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.suites.session import Listener, Target
from ttstack.bench.suites.smoke import Smoke, one_completion, plain_tokens, run_smoke, stop_within
from ttstack.errors import UsageError
from ttstack.records.types import Measured, MeasuredCheck

NAMES = ["deterministic", "stop", "unicode", "long_prompt", "streaming", "exact_length", "oversize"]


def measure(url: str, max_model_len: int | None = MAX_LEN, listener: Listener | None = None) -> Measured:
    return run_smoke(Target(Endpoint.of(url), "m", max_model_len), Smoke(), listener or Listener())


def test_a_right_server_passes_and_every_time_is_kept() -> None:
    heard: list[MeasuredCheck] = []
    with serving() as server:
        result = measure(server.url, listener=Listener(heard.append))
    assert result.ok, [check for check in result.checks if not check.ok]
    assert [check.name for check in result.checks] == NAMES
    assert heard == list(result.checks)
    assert result.void == 0
    assert result.requests == 11
    assert len(result.values["request_s"]) == 8
    assert len(result.values["ttft_s"]) == 1
    assert list(result.values["chunk_at_s"]) == sorted(result.values["chunk_at_s"])
    assert len(result.values["chunk_at_s"]) == 2  # the first chunk carries no text: it is no first token
    assert result.values["chunk_at_s"][0] == result.values["ttft_s"][0]
    assert all(value > 0 for values in result.values.values() for value in values)


@pytest.mark.parametrize(
    ("wrong", "check", "said"),
    [
        ("random", "deterministic", "differ"),
        ("stop_ignored", "stop", "finish_reason is length"),
        ("stop_kept", "stop", "does not end where"),
        ("stop_reason", "stop", "finish_reason is length"),
        ("stop_goes_on", "stop", "went on"),
        ("no_tokenize", "unicode", "404"),
        ("ascii", "unicode", "did not come back"),
        ("broken", "unicode", "broken characters"),
        ("unicode_lost", "unicode", "was counted as 3"),
        ("clipped", "long_prompt", "not taken as it was sent"),
        ("stream_text", "streaming", "text:"),
        ("stream_usage", "streaming", "usage:"),
        ("stream_reason", "streaming", "finish_reason:"),
        ("stream_error", "streaming", "EngineCore died"),
        ("stream_garbage", "streaming", "not JSON"),
        ("stream_drop", "streaming", "ended within the answer"),
        ("stream_no_usage", "streaming", "no usage"),
        ("stream_no_done", "streaming", "without [DONE]"),
        ("short", "exact_length", "length that was forced"),
        ("reason", "exact_length", "length that was forced"),
        ("oversize_taken", "oversize", "200"),
        ("oversize_500", "oversize", "500"),
        ("oversize_429", "oversize", "429"),
        ("oversize_kills", "oversize", "no longer well"),
        ("oversize_muddles", "oversize", "otherwise than before"),
    ],
)
def test_each_fault_fails_its_check_and_no_other(wrong: str, check: str, said: str) -> None:
    with serving(wrong) as server:
        result = measure(server.url)
    failed = [entry for entry in result.checks if not entry.ok]
    assert [entry.name for entry in failed] == [check]
    assert said in failed[0].detail
    assert not result.ok


def test_void_requests_are_counted_and_leave_no_times() -> None:
    with serving("stream_error") as server:
        result = measure(server.url)
    assert (result.void, result.requests) == (1, 11)
    assert "ttft_s" not in result.values
    assert len(result.values["request_s"]) == 7


def test_an_answer_without_text_is_no_answer() -> None:
    with serving("empty") as server:
        result = measure(server.url)
        assert result.checks[0].detail == "the answer has no text"
        assert not one_completion(server.url, "m").ok
    assert not result.ok


def test_a_server_that_is_gone_is_asked_once() -> None:
    with serving() as server:
        url = server.url
    result = measure(url)
    assert [check.ok for check in result.checks] == [False] * len(NAMES)
    assert "cannot connect" in result.checks[0].detail
    assert all("not tried" in check.detail for check in result.checks[1:])
    assert (result.requests, result.void) == (1, 1)


def test_one_completion() -> None:
    with serving() as server:
        good = one_completion(server.url, "m")
        assert (good.name, good.ok, good.expected) == ("completion", True, "8 tokens")
        server.dead = True
        bad = one_completion(server.url, "m")
        assert (bad.ok, bad.found) == (False, "status")
        assert "EngineDeadError" in bad.detail


def test_the_stop_is_inside_the_text_and_its_first_place() -> None:
    for text in ("one two three four", "abababababab", "aaaaaaaaaa", "x" * 30 + "tail end"):
        stop = stop_within(text)
        assert stop
        assert text.index(stop) <= len(text) // 2
        assert text.index(stop) + len(stop) < len(text)
    assert stop_within("one two three four five")[0] == "one two three four five"[11]
    assert stop_within("aaaaaaaaaabaaaaaaaaaaaa") == "baaaa", "a stop at the very start would prove less"
    for text in ("", "five!", "\ufffd" * 40):
        assert stop_within(text) == ""


def test_a_long_prompt_is_half_of_a_short_context() -> None:
    with serving() as server:
        result = measure(server.url, 2000)
    assert next(check for check in result.checks if check.name == "long_prompt").expected == 1000
    assert len(set(plain_tokens(500))) == 97
    assert max(plain_tokens(5000)) < 256


def test_nothing_checked_is_not_ok() -> None:
    assert Measured("smoke", (MeasuredCheck("a", ok=True),)).ok
    assert not Measured("smoke", (MeasuredCheck("a", ok=True), MeasuredCheck("b", ok=False))).ok
    assert not Measured("smoke", ()).ok


def test_a_server_whose_length_nobody_knows_is_not_measured() -> None:
    with pytest.raises(UsageError, match="how many tokens"):
        measure("http://127.0.0.1:1", None)


def test_a_suite_ends_when_it_is_told_to() -> None:
    class EndError(Exception):
        pass

    def end() -> None:
        raise EndError

    with pytest.raises(EndError):
        measure("http://127.0.0.1:1", listener=Listener(interrupted=end))
