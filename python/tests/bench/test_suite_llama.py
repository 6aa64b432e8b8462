"""The suites against a real server, llama.cpp's, in a process of its own; the model is tiny and random.

Nothing here says how fast it is: our times are held against those that the server tells of the same requests. How long
the longest prompt is comes from TTX_TEST_LONGEST (tokens).
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import pytest
from llama_server import llama_server
from suite_kit import only_the_client
from tiny_gguf import CONTEXT, write_gguf

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.suites.registry import SUITES
from ttstack.bench.suites.session import Listener, Target
from ttstack.run.foreign import extra_of, length_of, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.records.types import Cell, Measured

LONGEST = int(os.environ.get("TTX_TEST_LONGEST", "2048"))
SHORT = 2048  # tokens: what takes a moment
AT_ONCE = 4
ROOM = 512  # tokens of each answer, and more
AGREE = 0.03

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp (llama.cpp's server as a wheel) is not installed"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = tmp_path_factory.mktemp("llama") / "tiny.gguf"
    write_gguf(model)
    with llama_server(model, min(LONGEST + ROOM, CONTEXT), AT_ONCE) as found:
        yield found


def measure(url: str, suite: str, *words: str, most: int | None = None) -> Measured:
    endpoint = Endpoint.of(url)
    chosen = SUITES[suite]
    row = served(endpoint, "")
    where = Target(endpoint, str(row["id"]), most or length_of(row), max_num_seqs=AT_ONCE, extra=extra_of(row))
    return chosen.measure(where, chosen.read(words=words), Listener())


def agrees(cell: Cell) -> None:
    """Whether our times are the server's own, within the limit, in the run that was disturbed least."""
    size = float(str(cell.shape["prompt_tokens"]))
    pp = [
        abs(ours * told / size - 1)
        for ours, told in zip(cell.values["pp_tokens_per_s"], cell.server["prefill_s"], strict=True)
    ]
    tg = [
        abs(ours / told - 1)
        for ours, told in zip(cell.values["tg_ms_per_token"], cell.server["tg_ms_per_token"], strict=True)
    ]
    assert min(pp) <= AGREE, (cell.name, pp)
    assert min(tg) <= AGREE, (cell.name, tg)


def test_smoke(url: str) -> None:
    found = measure(url, "smoke")
    assert found.ok, found.checks


def test_sweep(url: str) -> None:
    found = measure(url, "sweep32k", "output_tokens=128", "runs=3", "warmup_runs=0", most=SHORT + ROOM)
    sizes = (1024, 2048, 4096, 8192, 16384, 32768)
    assert [cell.name for cell in found.cells] == [f"prompt-{size}" for size in sizes]
    for size, cell in zip(sizes, found.cells, strict=True):
        if size > SHORT:
            assert "not measured" in cell.notes[0]
            continue
        assert only_the_client(cell.reasons)
        assert cell.stats["ttft_s"].n == 3
        agrees(cell)
    assert needles(found) == {"needle-1024", "needle-2048"}
    assert found.void == 0
    assert len(found.outputs) == 6


@pytest.mark.skipif(LONGEST < 32768, reason="takes half a minute (the flake check `bench` does it)")
def test_sweep_to_32k(url: str) -> None:
    words = ("prompt_tokens=4096,8192,16384,32768", "output_tokens=128", "runs=1", "warmup_runs=0")
    found = measure(url, "sweep32k", *words)
    for cell in found.cells:
        assert only_the_client(cell.reasons)
        agrees(cell)
    assert needles(found) == {"needle-4096", "needle-8192", "needle-16384", "needle-32768"}
    assert found.void == 0


def needles(found: Measured) -> set[str]:
    """Give the names of the needles, of which this model finds none: it cannot read, and must not be said to."""
    checks = [check for check in found.checks if check.name.startswith("needle")]
    assert {(check.ok, check.detail) for check in checks} == {(False, "not found in the answer")}
    return {check.name for check in checks}


def test_infbench(url: str) -> None:
    found = measure(url, "infbench", "prompt_tokens=1024", "output_tokens=128", "runs=3", "waves=3", "concurrency=1,4")
    assert [cell.name for cell in found.cells] == ["b1", "c1", "c4"]
    assert all(only_the_client(cell.reasons) for cell in found.cells)
    agrees(found.cells[0])
    assert found.void == 0
