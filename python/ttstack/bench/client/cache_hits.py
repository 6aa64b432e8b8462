"""How many prompt tokens a server took from its prefix cache, by its own counters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client

if TYPE_CHECKING:
    from ttstack.bench.client.endpoint import Endpoint

_HITS = re.compile(rb"^vllm:(?:gpu_)?prefix_cache_hits_total(?:\{[^\n]*\})? ([0-9.eE+]+)", re.MULTILINE)
"""vLLM's counter, and its name before version 0.10 (docs/design/metrics.md)."""
_WAIT_S = 5.0


def prefix_hits(endpoint: Endpoint) -> float | None:
    """Read the counter, tokens since the server's start; None when the server has none."""
    try:
        status, body = Client(endpoint, _WAIT_S).raw("/metrics")
    except BenchError:
        return None
    found = _HITS.findall(body) if status == 200 else []  # noqa: PLR2004 - OK
    return sum(map(float, found)) if found else None
