"""Each suite against the simulated engine in a process of its own. Times are never judged: this machine may be busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from suite_kit import only_the_client, sim_engine

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.suites.registry import SUITES
from ttstack.bench.suites.session import Listener, Target

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.records.types import Measured

FAST = ("--sim-prefill-rate", "50000", "--sim-token-ms", "1", "--enable-prompt-tokens-details")


def measure(url: str, suite: str, *words: str, simulated: bool = True) -> Measured:
    chosen = SUITES[suite]
    where = Target(Endpoint.of(url), "m", 8192, max_num_seqs=4, simulated=simulated)
    return chosen.measure(where, chosen.read(words=words), Listener())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> object:
    with sim_engine(tmp_path_factory.mktemp("sim"), *FAST) as found:
        yield found


def test_smoke(url: str) -> None:
    found = measure(url, "smoke")
    assert found.ok, found.checks
    assert list(found.outputs) == ["count"]


def test_sweep(url: str) -> None:
    found = measure(url, "sweep32k", "prompt_tokens=512,1024,2048,16384", "output_tokens=8", "runs=2")
    assert [cell.requests for cell in found.cells] == [2, 2, 2, 0]
    assert all(only_the_client(cell.reasons) for cell in found.cells)
    needles = [check for check in found.checks if check.name.startswith("needle")]
    assert [(check.name, check.ok) for check in needles] == [
        ("needle-512", True),
        ("needle-1024", True),
        ("needle-2048", True),
    ]
    assert found.settings["needle_rule"] == "echo"
    assert found.cells[0].server["prefill_mean_s"][0] >= 512 / 50000
    assert found.void == 0
    assert len(found.outputs) == 6


def test_a_simulated_engine_that_is_not_known_to_be_one_finds_no_needle(url: str) -> None:
    words = ("prompt_tokens=512", "output_tokens=8", "runs=1", "warmup_runs=0")
    found = measure(url, "sweep32k", *words, simulated=False)
    (check,) = [check for check in found.checks if check.name == "needle-512"]
    assert not check.ok
    assert found.settings["needle_rule"] == "question"


def test_infbench(url: str) -> None:
    found = measure(url, "infbench", "prompt_tokens=128", "output_tokens=48", "runs=3", "waves=3")
    assert [cell.name for cell in found.cells] == ["b1", "c1", "c2", "c4"]
    assert [cell.requests for cell in found.cells] == [3, 3, 6, 12]
    for cell in found.cells:
        assert only_the_client(cell.reasons)
        assert cell.stats["ttft_s"].low > 0
    assert all(cell.values["tokens_per_s"][0] > 0 for cell in found.cells[1:])
    assert found.void == 0


def test_soak(url: str) -> None:
    words = ("duration_s=1", "concurrency=2", "prompt_tokens=64,256", "output_tokens=48,64", "sample_every_s=0.2")
    found = measure(url, "soak", *words)
    (cell,) = found.cells
    assert only_the_client(cell.reasons)
    assert 0 < cell.stats["tg_ms_per_token"].n <= cell.requests - 2
    assert [check.name for check in found.checks] == ["answers", "drift", "same_answers", "cells"]
    assert next(check for check in found.checks if check.name == "same_answers").ok
    assert len(found.values["memory_available_bytes"]) > 3


@pytest.mark.parametrize(
    ("fault", "code"), [("stream-error", "server_error"), ("stream-cut", "dropped"), ("no-usage", "no_usage")]
)
def test_a_faulty_engine_gives_no_valid_cell(tmp_path: Path, fault: str, code: str) -> None:
    with sim_engine(tmp_path, *FAST, "--sim-fault", fault) as faulty:
        found = measure(faulty, "infbench", "prompt_tokens=64", "output_tokens=8", "runs=3", "concurrency=2")
    assert [cell.voids for cell in found.cells] == [{code: 3}, {code: 10}]
    assert not any(cell.valid for cell in found.cells)
    assert not found.ok
    assert not found.outputs


def test_an_engine_that_dies_leaves_void_cells_and_not_tried_ones(tmp_path: Path) -> None:
    with sim_engine(tmp_path, *FAST, "--sim-fault", "die-serving:8") as dying:
        found = measure(dying, "infbench", "prompt_tokens=64", "output_tokens=8", "runs=3", "timeout_s=10")
    assert not any(cell.valid for cell in found.cells)
    assert not found.ok


def test_a_prefix_cache_that_helps_makes_the_cell_void(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.bench.suites.session.fresh_prompt", lambda size, _seed, _number: (100,) * size)
    found = measure(url, "infbench", "prompt_tokens=512", "output_tokens=8", "runs=3", "concurrency=1")
    assert all("cache_hit" in cell.voids for cell in found.cells)
    assert not found.ok
