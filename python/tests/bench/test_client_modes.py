"""The client against the reference server, on a loop whose clock is exact: what is measured is compared with ``==``."""

from __future__ import annotations

import pytest
from reference_modes import MODES
from reference_server import Server, Truth
from reference_streams import WORD
from virtual_loop import run

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.load import load
from ttstack.bench.client.types import Api, Ask, Closed, Limits, LoadResult, Result, VoidReason

TOKENS = 10
CASES = [
    (name, api)
    for name, mode in MODES.items()
    for api in (Api.CHAT, Api.COMPLETIONS)
    if api is Api.CHAT or not mode.chat
]


def ask_for(api: Api) -> Ask:
    return Ask(
        "reference", "hello" if api is Api.CHAT else (101, 102, 103), TOKENS, api, prompt_tokens={Api.CHAT: 7}.get(api)
    )


async def measured(name: str, api: Api, requests: int) -> tuple[LoadResult, list[Truth]]:
    async with Server() as server:
        endpoint = Endpoint.of(f"{server.url}/{name}")
        result = await load(endpoint, [ask_for(api)] * requests, Closed(1), Limits(timeout_s=2.0))
        return result, server.log


def near(value: float | None, true: float) -> bool:
    return value is not None and abs(value - true) < 1e-9


@pytest.mark.parametrize(("name", "api"), [case for case in CASES if MODES[case[0]].void is None])
def test_true_values_are_measured(name: str, api: Api) -> None:
    found, log = run(measured(name, api, 2))
    assert [result.void for result in found.results] == [None, None]
    assert len(log) == 2
    assert [result.resent for result in found.results] == [0, name == "once"]
    for result, truth in zip(found.results, log, strict=True):
        compare(result, truth, found.began)


def test_reasoning_is_read_once_and_apart_from_the_text() -> None:
    found, _ = run(measured("reasoning", Api.CHAT, 1))
    (result,) = found.results
    assert (result.reasoning, result.text) == ("hm" * (TOKENS // 2), WORD * (TOKENS // 2))


def compare(result: Result, truth: Truth, began: float) -> None:
    assert result.sent is not None
    assert near(result.sent + began, truth.arrived)
    assert near(result.ttft_s, truth.shown_at[0] - truth.arrived)
    assert near(result.e2e_s, (truth.token_at[-1] if result.counted else truth.shown_at[-1]) - truth.arrived)
    shown = [chunk.at + began for chunk in result.chunks if chunk.shown]
    assert len(shown) == len(result.gaps_s) + 1 or result.counted
    assert sorted(set(shown)) == pytest.approx(sorted(set(truth.shown_at)), abs=1e-9)
    before = sum(at <= truth.shown_at[0] for at in truth.token_at)
    exact = (truth.token_at[-1] - truth.shown_at[0]) / (TOKENS - before)
    assert near(result.tpot_s, exact) == result.tpot_exact
    assert result.usage is not None
    assert result.usage.completion == TOKENS


@pytest.mark.parametrize(("name", "api"), [case for case in CASES if MODES[case[0]].void is not None])
def test_what_went_wrong_is_void_and_says_why(name: str, api: Api) -> None:
    found, _ = run(measured(name, api, 1))
    (result,) = found.results
    assert result.void is not None
    assert (result.void.reason, name) == (MODES[name].void, name)
    assert result.void.detail
    assert found.voids == {result.void.reason: 1}
    assert found.valid == ()
    assert any(result.void.reason.value in reason for reason in found.against)
    values = (result.ttft_s, result.tpot_s, result.e2e_s, result.first_tokens, result.prefill_tokens_per_s)
    assert values == (None,) * 5
    assert (result.gaps_s, found.output_tokens, found.output_tokens_per_s) == ((), 0, None)


def test_every_void_reason_is_shown() -> None:
    """The rest are seen in test_client_load: no connection, no TLS, too large."""
    elsewhere = {VoidReason.CONNECT, VoidReason.TLS, VoidReason.TOO_LARGE}
    assert {mode.void for mode in MODES.values()} - {None} == set(VoidReason) - elsewhere
