from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from suite_kit import Scripted, install, target

from ttstack.bench.client.types import VoidReason
from ttstack.bench.errors import BenchError
from ttstack.bench.suites.beside import beside
from ttstack.bench.suites.drift import Drift
from ttstack.bench.suites.session import Listener
from ttstack.bench.suites.soak import Soak, drift_check, run_soak
from ttstack.host.cards import inventory
from ttstack.sim.host import make_host

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.records.types import Measured, MeasuredCheck


def soak(max_model_len: int | None = 8192, listener: Listener | None = None, **settings: object) -> Measured:
    chosen = Soak(**{"duration_s": 100.0, "concurrency": 4, "seed": "s", **settings})  # type: ignore[arg-type]
    return run_soak(target(max_model_len), chosen, listener or Listener())


def check(found: Measured, name: str) -> MeasuredCheck:
    return next(check for check in found.checks if check.name == name)


def test_a_steady_server_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = install(monkeypatch, Scripted(tpot=lambda ask, *_: 1e-6 * (ask.expected_prompt or 100)))
    found = soak()
    assert found.ok, found.checks
    (cell,) = found.cells
    assert cell.name == "mixed"
    assert set(cell.values["prompt_tokens"]) == {128, 1024, 4096}
    assert set(cell.values["output_tokens"]) == {64, 128, 256}
    assert {len(column) for column in cell.values.values()} == {cell.requests - 4}, "without the first wave"
    assert min(cell.values["sent_at_s"]) > 0
    assert check(found, "drift").found == pytest.approx(0.0, abs=1e-3)
    warm = scripted.loads[1][0]
    assert sorted(ask.expected_prompt or 0 for ask in warm) == [128, 1024, 4096]
    assert found.values["memory_available_bytes"][0] > 0
    assert len(found.values["memory_available_bytes"]) == len(found.values["memory_available_bytes_at_s"]) == 2


def test_a_server_that_slows_down_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(tpot=lambda _ask, _number, now: 0.01 * (1 + now / 500)))
    found = soak()
    assert not check(found, "drift").ok
    assert "TPOT drifts: +1" in check(found, "drift").detail
    assert check(found, "same_answers").ok
    assert not found.ok


def test_noise_that_hides_a_drift_is_no_proof_of_none() -> None:
    assert drift_check(Drift(0.01, -0.02, 0.04, 20), 0.05).ok
    unsure = drift_check(Drift(0.01, -0.10, 0.12, 20), 0.05)
    assert not unsure.ok
    assert "noise" in unsure.detail
    assert not drift_check(Drift(-0.2, -0.3, -0.1, 20), 0.05).ok
    assert "drifts" in drift_check(Drift(0.08, 0.02, 0.14, 20), 0.05).detail
    assert "too few" in drift_check(None, 0.05).detail


def test_a_void_request_makes_the_cell_void(monkeypatch: pytest.MonkeyPatch) -> None:
    def void(ask: object, number: int) -> VoidReason | None:
        return VoidReason.SERVER_ERROR if number == 7 and ask.label == "mixed" else None  # type: ignore[attr-defined]

    install(monkeypatch, Scripted(void=void))
    found = soak()
    assert found.cells[0].voids == {"server_error": 1}
    assert not found.cells[0].valid
    assert found.void == 1


def test_a_void_warm_up_makes_the_cell_void(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(void=lambda ask, _number: VoidReason.TIMEOUT if ask.max_tokens == 8 else None))
    assert soak().cells[0].reasons == ("3 of 3 void in the warm-up: timeout",)


def test_answers_that_come_all_at_once_make_the_cell_void(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted(bundle=lambda _ask, number: 64 if number in {9, 11} else 1))
    found = soak(output_tokens=(64,))
    assert found.cells[0].reasons == ("2 answers came all at once: no time per token can be told",)


def test_other_answers_afterwards_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted()
    install(monkeypatch, scripted)
    answers = iter([{"sum": "42", "code": "x"}, {"sum": "43", "code": "x"}])
    monkeypatch.setattr("ttstack.bench.suites.answers.fixed_answers", lambda _session: next(answers))
    found = soak()
    assert not check(found, "same_answers").ok
    assert "sum" in check(found, "same_answers").detail


def test_lengths_that_do_not_fit_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted())
    found = soak(2000)
    assert set(found.cells[0].values["prompt_tokens"]) == {128, 1024}
    assert "left out: 4096 + 256" in found.cells[0].notes[0]
    nothing = soak(100)
    assert nothing.cells[0].requests == 0
    assert not nothing.ok


def test_it_ends_within_the_load_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Scripted())
    calls = []

    def end() -> None:
        calls.append(1)
        if len(calls) > 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        soak(duration_s=1e9, listener=Listener(interrupted=end))


def test_a_server_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise BenchError("cannot connect", reason="connect")

    install(monkeypatch, Scripted())
    monkeypatch.setattr("ttstack.bench.suites.session.run_load", gone)
    found = soak()
    assert found.cells[0].reasons == ("cannot connect",)
    assert [check.ok for check in found.checks] == [False] * len(found.checks)


def test_the_cards_are_looked_at_meanwhile(tmp_path: Path) -> None:
    roots = make_host(tmp_path, 1)
    cards = inventory(roots)
    clock = roots.sys / "class/tenstorrent/tenstorrent!0/tt_aiclk"
    with beside(target(cards=cards, roots=roots), every_s=0.01) as looks:
        clock.write_text("1350\n")
        end = time.monotonic() + 10
        while len(looks.seen[f"card_{cards[0].id}_clock_mhz"]) < 4 and time.monotonic() < end:
            time.sleep(0.01)
    values = looks.values()
    seen = values[f"card_{cards[0].id}_clock_mhz"]
    assert (seen[0], seen[-1]) == (800.0, 1350.0)
    assert len(seen) == len(values[f"card_{cards[0].id}_clock_mhz_at_s"]) >= 4
    assert f"card_{cards[0].id}_temperature_c" not in values, "the simulated host has no such sensor"
