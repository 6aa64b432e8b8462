from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from suite_kit import Scripted, install, target

from ttstack.bench.client.types import VoidReason
from ttstack.bench.suites.infbench import Infbench, concurrencies, run_infbench
from ttstack.bench.suites.session import Listener

if TYPE_CHECKING:
    from ttstack.records.types import Measured


def infbench(max_num_seqs: int | None = 4, **settings: object) -> Measured:
    chosen = Infbench(**settings)  # type: ignore[arg-type]
    return run_infbench(target(max_num_seqs=max_num_seqs), chosen, Listener())


def test_concurrency_goes_up_to_what_the_arm_says() -> None:
    assert concurrencies(Infbench(), 32) == (1, 2, 4, 8, 16, 32)
    assert concurrencies(Infbench(), 24) == (1, 2, 4, 8, 16, 24)
    assert concurrencies(Infbench(), 1) == (1,)
    assert concurrencies(Infbench(), None) == (1, 2, 4, 8, 16, 32)
    assert concurrencies(Infbench(max_concurrency=2), 32) == (1, 2)
    assert concurrencies(Infbench(concurrency=(3, 5)), 32) == (3, 5)


def test_pp_and_tg_then_more_and_more_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = install(monkeypatch, Scripted(ttft=lambda *_: 0.5, tpot=lambda *_: 0.01))
    found = infbench(seed="s")
    assert found.ok
    assert [cell.name for cell in found.cells] == ["b1", "c1", "c2", "c4"]
    b1, c1, c2, c4 = found.cells
    assert b1.values["pp_tokens_per_s"] == (2048.0,) * 5
    assert b1.values["tg_ms_per_token"] == pytest.approx((10.0,) * 5)
    assert [cell.requests for cell in found.cells] == [5, 5, 10, 20]
    assert [cell.stats["ttft_s"].n for cell in (c1, c2, c4)] == [4, 8, 16], "the first wave is not among them"
    # One request is 0.5 s + 127 x 10 ms = 1.77 s for 128 tokens.
    assert c4.values["tokens_per_s"][0] == pytest.approx(4 * 128 / 1.77)
    assert c4.values["goodput_share"] == (1.0,)
    assert c4.values["goodput_requests_per_s"][0] == pytest.approx(4 / 1.77)
    assert found.settings["concurrency"] == [1, 2, 4]
    warm = [asks for asks, _ in scripted.loads[1::2]]
    assert [len(asks) for asks in warm] == [1, 1, 2, 4]
    assert {ask.max_tokens for asks in warm for ask in asks} == {8}


def test_no_two_prompts_of_the_suite_share_a_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = install(monkeypatch, Scripted())
    infbench(2)
    infbench(2)
    prompts = [ask.prompt for asks, _ in scripted.loads for ask in asks if isinstance(ask.prompt, tuple)]
    assert len(prompts) == 2 * (6 + 6 + 12)
    assert len({prompt[:64] for prompt in prompts}) == len(prompts), "neither in another cell nor in another run"


def test_the_first_wave_is_in_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    burst = Scripted(
        ttft=lambda ask, number, now: 9.0 + number if now == 0 and ask.max_tokens == 128 else 0.5,
        tpot=lambda _ask, _number, now: 0.5 if now == 0 else 0.01,
    )
    install(monkeypatch, burst)
    found = infbench(4, concurrency=(4,), waves=6)
    (cell,) = [cell for cell in found.cells if cell.name == "c4"]
    assert max(cell.values["ttft_s"]) == 0.5
    assert max(cell.values["tg_ms_per_token"]) == pytest.approx(10.0)
    assert cell.values["goodput_share"] == (1.0,)
    assert cell.requests == 24


def test_a_void_request_of_the_first_wave_makes_the_cell_void_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    void = Scripted(void=lambda ask, number: VoidReason.CACHE_HIT if ask.label == "c2" and number == 0 else None)
    install(monkeypatch, void)
    found = infbench(2)
    cells = {cell.name: cell for cell in found.cells}
    assert cells["c2"].reasons == ("1 of 2 void in the warm-up: cache_hit", "1 of 10 void: cache_hit")
    assert cells["c1"].valid
    assert not found.ok


def test_goodput_counts_what_kept_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(ttft=lambda _ask, number, _now: 0.5 if number % 2 else 1.0))
    found = infbench(1, ttft_s=0.7, waves=9)
    assert found.cells[1].values["goodput_share"] == (0.5,)
    rate = found.cells[1].values["tokens_per_s"][0] / 128
    assert found.cells[1].values["goodput_requests_per_s"][0] == pytest.approx(0.5 * rate, abs=1e-5)
    assert infbench(1, tpot_s=0.001).cells[1].values["goodput_share"] == (0.0,)


def test_no_steady_window_makes_the_cell_void(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Scripted(ttft=lambda ask, number, _now: 500.0 if ask.label == "c2" and number == 0 else 0.5)
    install(monkeypatch, stuck)
    cells = {cell.name: cell for cell in infbench(2).cells}
    assert cells["c2"].reasons == ("there is no steady window",)


def test_what_does_not_fit_is_not_measured() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(monkeypatch, Scripted())
        found = run_infbench(target(1024, max_num_seqs=2), Infbench(), Listener())
    assert [cell.notes[0].partition(":")[0] for cell in found.cells] == ["not measured"] * 3
    assert not found.ok
