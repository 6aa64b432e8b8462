"""Servers and loads whose times are known, for the suites' tests."""

from __future__ import annotations

import heapq
import os
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import ttstack
from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.types import Ask, Chunk, Lag, LoadResult, Result, Usage, Void, VoidReason
from ttstack.bench.suites.session import Target
from ttstack.sim.host import make_host
from ttstack.sim.model import make_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pytest

    from ttstack.bench.client.types import Closed, Limits

ENDPOINT = Endpoint("127.0.0.1", 1)
QUIET = Lag(0.0001, 0.0005, 0.001, 100)
BUSY = Lag(0.0001, 0.05, 0.1, 100)


def target(max_model_len: int | None = 65536, **more: object) -> Target:
    return Target(ENDPOINT, "m", max_model_len, **more)  # type: ignore[arg-type]


def result(  # noqa: PLR0913 - the times of a request, by name
    number: int = 0,
    *,
    sent: float = 0.0,
    ttft: float = 0.5,
    tpot: float = 0.01,
    tokens: int = 4,
    prompt: int = 100,
    void: VoidReason | None = None,
    counted: bool = True,
    ask: Ask | None = None,
    server: dict[str, object] | None = None,
    bundle: int = 1,
) -> Result:
    """Make a result whose tokens came at these times, s; ``bundle`` of them in each event."""
    ask = ask or Ask("m", tuple(range(prompt)), tokens)
    at = [sent + ttft + tpot * done for done in range(bundle - 1, tokens, bundle)]
    return Result(
        ask,
        number,
        sent,
        void=None if void is None else Void(void, "as the test wants it"),
        chunks=tuple(Chunk(moment, bundle if counted else None, shown=True) for moment in at),
        text=f"answer to {ask.label}",
        usage=Usage(ask.expected_prompt or 7, tokens, 0),
        server=server or {},
    )


def load_of(results: Iterable[Result], pattern: Closed, *, lag: Lag = QUIET, cpu_s: float = 0.0) -> LoadResult:
    kept = tuple(results)
    voids = Counter(result.void.reason for result in kept if result.void is not None)
    return LoadResult(kept, pattern, 0.0, 0.0, 10.0, lag, cpu_s, len(kept), voids)


def _first(_ask: Ask, _number: int) -> None:
    return None


@dataclass
class Scripted:
    """Stands in for ``run_load``: a closed loop at a server with a batch, whose times follow from these."""

    ttft: Callable[[Ask, int, float], float] = lambda _ask, _number, _now: 0.1  # ask, number, now -> s
    tpot: Callable[[Ask, int, float], float] = lambda _ask, _number, _now: 0.01
    void: Callable[[Ask, int], VoidReason | None] = _first
    bundle: Callable[[Ask, int], int] = lambda _ask, _number: 1  # tokens of each event
    lag: Lag = QUIET
    cold_ttft: float = 0.0  # more, for the first request of each length
    loads: list[tuple[tuple[Ask, ...], Closed]] = field(default_factory=list)
    _known: set[int | None] = field(default_factory=set)

    def __call__(
        self,
        _endpoint: Endpoint,
        asks: Iterable[Ask],
        pattern: Closed,
        limits: Limits,
        on_result: Callable[[Result], None] | None = None,
    ) -> LoadResult:
        free = [0.0] * pattern.concurrency
        results: list[Result] = []
        for number, ask in enumerate(islice(asks, 100_000)):
            now = heapq.heappop(free)
            if limits.duration_s is not None and now > limits.duration_s:
                break
            cold = 0.0 if ask.expected_prompt in self._known else self.cold_ttft
            self._known.add(ask.expected_prompt)
            made = result(
                number,
                sent=now,
                ttft=self.ttft(ask, number, now) + cold,
                tpot=self.tpot(ask, number, now),
                tokens=ask.max_tokens,
                ask=ask,
                void=self.void(ask, number),
                bundle=self.bundle(ask, number),
            )
            results.append(made)
            heapq.heappush(free, made.chunks[-1].at)
        self.loads.append((tuple(one.ask for one in results), pattern))
        load = load_of(results, pattern, lag=self.lag)
        if on_result is None:
            return load
        for one in results:
            on_result(one)
        return LoadResult((), pattern, 0.0, 0.0, 10.0, self.lag, 0.0, len(results), load.voids)


def install(monkeypatch: pytest.MonkeyPatch, scripted: Scripted) -> Scripted:
    monkeypatch.setattr("ttstack.bench.suites.session.run_load", scripted)
    monkeypatch.setattr("ttstack.bench.suites.session.prefill_counter", lambda _endpoint: None)
    return scripted


@contextmanager
def sim_engine(folder: Path, *flags: str, max_model_len: int = 8192) -> Iterator[str]:
    """Run the simulated engine in a process of its own; give its URL."""
    roots = make_host(folder / "host", 1)
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(ttstack.__file__).parents[1]),
        "TTX_SIM_DEV": str(roots.dev / "tenstorrent"),
        "TT_CACHE_PATH": str(folder / "cache"),
    }
    quick = ("--port", "0", "--sim-boot-ms", "0", "--sim-teardown-ms", "0", "--max-model-len", str(max_model_len))
    words = [
        sys.executable,
        "-m",
        "ttstack.sim",
        "serve",
        str(make_model(folder / "model")),
        "--served-model-name",
        "m",
    ]
    log = folder / "log"
    with log.open("wb") as out, subprocess.Popen([*words, *quick, *flags], stdout=out, stderr=out, env=env) as process:
        try:
            yield _url_in(log, process)
        finally:
            process.kill()


def _url_in(log: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + 20
    while "Application startup complete." not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.01)
    found = re.search(r"Starting vLLM API server 0 on (\S+)", log.read_text())
    assert found is not None
    return found[1]


def only_the_client(reasons: Iterable[str]) -> bool:
    """Whether nothing but this machine being busy is against a cell."""
    return all(reason.startswith("the client") or "all at once" in reason for reason in reasons)
