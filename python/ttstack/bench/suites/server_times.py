"""What the server says of its own times, to stand beside ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ttstack.bench.client.endpoint import Endpoint
    from ttstack.bench.client.types import Result

_PREFILL = re.compile(rb"^vllm:request_prefill_time_seconds_(sum|count)(?:\{[^\n]*\})? ([0-9.eE+-]+)", re.MULTILINE)
_WAIT_S = 5.0


def server_values(results: Iterable[Result]) -> dict[str, tuple[float, ...]]:
    """Give ``prefill_s``, ``queue_s`` and ``tg_ms_per_token`` by the server's own clock, where each result tells them.

    llama.cpp's ``timings`` (tools/server/README.md): ``prompt_ms``, and ``predicted_ms`` from the first token of
    ``predicted_n`` to the last. vLLM's ``metrics`` (--enable-per-request-metrics): ``time_to_first_token_ms`` with the
    wait of ``queue_time_ms`` inside, ``mean_itl_ms``.
    """
    rows = [_times(result) for result in results]
    names = {name for row in rows for name in row}
    return {
        name: tuple(round(row[name], 7) for row in rows) for name in sorted(names) if all(name in row for row in rows)
    }


def _times(result: Result) -> dict[str, float]:
    told = {
        name: float(value)
        for name, value in result.server.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    found = {}
    if "prompt_ms" in told:
        found["prefill_s"] = told["prompt_ms"] / 1000
    if told.get("predicted_n", 0) > 1 and "predicted_ms" in told:
        found["tg_ms_per_token"] = told["predicted_ms"] / (told["predicted_n"] - 1)
    if "time_to_first_token_ms" in told:
        queue = told.get("queue_time_ms", 0.0)
        found["prefill_s"] = (told["time_to_first_token_ms"] - queue) / 1000
        found["queue_s"] = queue / 1000
    if "mean_itl_ms" in told:
        found["tg_ms_per_token"] = told["mean_itl_ms"]
    return found


def prefill_counter(endpoint: Endpoint) -> tuple[float, float] | None:
    """Read vLLM's histogram of prefill times: (seconds, requests) since the server's start; None without one."""
    try:
        status, body = Client(endpoint, _WAIT_S).raw("/metrics")
    except BenchError:
        return None
    sums = {b"sum": 0.0, b"count": 0.0}
    found = _PREFILL.findall(body) if status == 200 else []  # noqa: PLR2004 - OK
    for name, value in found:
        sums[name] += float(value)
    return (sums[b"sum"], sums[b"count"]) if found else None


def prefill_mean(
    before: tuple[float, float] | None, after: tuple[float, float] | None, requests: int
) -> Mapping[str, tuple[float, ...]]:
    """Give ``prefill_mean_s`` when the server prefilled these requests and no others between two looks."""
    if before is None or after is None or requests < 1 or after[1] - before[1] != requests:
        return {}
    return {"prefill_mean_s": (round((after[0] - before[0]) / requests, 7),)}
