from __future__ import annotations

import pytest
from suite_kit import BUSY, Scripted, install, target

from ttstack.bench.client.types import VoidReason
from ttstack.bench.errors import BenchError
from ttstack.bench.suites.answers import FIXED
from ttstack.bench.suites.session import Listener
from ttstack.bench.suites.sweep32k import Sweep32k, line_values, run_sweep32k
from ttstack.records.types import Cell, Measured, MeasuredCheck

LENGTHS = (1024, 2048, 4096)


def sweep(max_model_len: int | None = 65536, listener: Listener | None = None, **settings: object) -> Measured:
    chosen = {"prompt_tokens": LENGTHS, "needle": False, **settings}
    return run_sweep32k(target(max_model_len), Sweep32k(**chosen), listener or Listener())  # type: ignore[arg-type]


def fixed_and_slope(ask: object, _number: int, _now: float) -> float:
    return 0.05 + 0.001 * (ask.expected_prompt or 0)  # type: ignore[attr-defined]


def test_each_length_is_a_cell_and_the_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(ttft=fixed_and_slope))
    found = sweep(seed="abc")
    assert found.ok
    assert [cell.name for cell in found.cells] == ["prompt-1024", "prompt-2048", "prompt-4096"]
    assert [cell.stats["ttft_s"].n for cell in found.cells] == [3, 3, 3]
    assert found.cells[0].values["ttft_s"][0] == pytest.approx(0.05 + 1.024)
    assert found.values["prefill_fixed_s"][0] == pytest.approx(0.05)
    assert found.values["prefill_ms_per_token"][0] == pytest.approx(1.0)
    assert found.values["prefill_at_tokens"] == (1024.0,) * 3 + (2048.0,) * 3 + (4096.0,) * 3
    assert found.values["prefill_residual_s"] == pytest.approx((0.0,) * 9, abs=1e-6)
    assert found.values["prefill_reach_ms_per_token"][0] == pytest.approx(0.0, abs=1e-6)
    assert (found.settings["seed"], found.settings["runs"]) == ("abc", 3)
    assert set(found.outputs) == set(FIXED)
    assert found.requests == len(FIXED) + 3 * 4


def test_the_warm_up_is_never_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = install(monkeypatch, Scripted(cold_ttft=30.0))
    found = sweep()
    assert all(max(cell.values["ttft_s"]) < 1 for cell in found.cells), "the cold request is in no value"
    warm, measured = scripted.loads[1::2], scripted.loads[2::2]
    assert [len(asks) for asks, _ in warm] == [1, 1, 1]
    assert [len(asks) for asks, _ in measured] == [3, 3, 3]
    prompts = [ask.prompt for asks, _ in scripted.loads[1:] for ask in asks]
    assert len({prompt[:64] for prompt in prompts}) == len(prompts), "no two share a beginning"
    without = sweep(warmup_runs=0)
    assert all(max(cell.values["ttft_s"]) < 1 for cell in without.cells), "the server is warm by now"
    install(monkeypatch, Scripted(cold_ttft=30.0))
    assert sweep(warmup_runs=0).cells[0].values["ttft_s"][0] > 30, "so it is the warm-up that helped"


def test_a_void_request_makes_its_cell_void_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def void(ask: object, number: int) -> VoidReason | None:
        return VoidReason.DROPPED if ask.expected_prompt == 2048 and ask.max_tokens == 64 and number == 1 else None  # type: ignore[attr-defined]

    install(monkeypatch, Scripted(void=void))
    found = sweep()
    assert [cell.valid for cell in found.cells] == [True, False, True]
    assert found.cells[1].reasons == ("1 of 3 void: dropped",)
    assert found.void == 1
    assert not found.ok
    assert found.checks[-1] == MeasuredCheck("cells", ok=False, detail="void: prompt-2048")
    assert 2048.0 not in found.values["prefill_at_tokens"], "a void cell is in no line"


def test_a_void_warm_up_makes_the_cell_void(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(void=lambda ask, _number: VoidReason.TIMEOUT if ask.max_tokens == 8 else None))
    found = sweep()
    assert {cell.reasons for cell in found.cells} == {("1 of 1 void in the warm-up: timeout",)}


def test_a_busy_client_makes_the_cells_void(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(lag=BUSY))
    assert not any(cell.valid for cell in sweep().cells)


def test_what_does_not_fit_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Cell] = []
    install(monkeypatch, Scripted())
    found = sweep(2048 + 64, Listener(cell=heard.append))
    assert [cell.requests for cell in found.cells] == [3, 3, 0]
    assert found.cells[2].notes == ("not measured: 4096 + 64 tokens do not fit into max_model_len 2112",)
    assert found.ok, "which is nothing against the others"
    assert heard == list(found.cells)
    assert sweep(None).cells[2].requests == 3, "nobody says that it does not fit"
    nothing = sweep(512)
    assert not nothing.ok
    assert nothing.checks[-1].detail == "no cell was measured"


def test_a_server_that_is_gone_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted()
    calls = []

    def load(*args: object) -> object:
        calls.append(args)
        if len(calls) > 3:
            raise BenchError("cannot connect", reason="connect")
        return scripted(*args)  # type: ignore[arg-type]

    install(monkeypatch, scripted)
    monkeypatch.setattr("ttstack.bench.suites.session.run_load", load)
    found = sweep()
    assert len(calls) == 4
    assert [cell.reasons for cell in found.cells[1:]] == [
        ("cannot connect",),
        ("not tried, since the server was gone at prompt-2048",),
    ]
    assert found.cells[1].voids == {"connect": 3}
    assert found.void == 3


def test_missing_answers_fail_their_check(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(void=lambda ask, _number: VoidReason.NO_USAGE if ask.label == "sum" else None))
    found = sweep()
    assert found.checks[0].detail == "no usable answer to: sum"
    assert "sum" not in found.outputs
    assert (found.void, found.ok) == (1, False)


def test_it_ends_between_two_cells_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = install(monkeypatch, Scripted())

    def end() -> None:
        if len(scripted.loads) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(listener=Listener(interrupted=end))
    assert len(scripted.loads) == 3


def test_no_line_without_two_lengths() -> None:
    assert line_values([]) == {}
    assert line_values([Cell("prompt-9", {"prompt_tokens": 9}, values={"ttft_s": (1.0, 2.0)})]) == {}
