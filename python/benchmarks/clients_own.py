"""The measuring client as a program of its own, for clients.py: URL OUT CONCURRENCY REQUESTS TOKENS."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.load import run_load
from ttstack.bench.client.types import Api, Ask, Closed, Limits

WORDS = 100


def main() -> None:
    url, out, concurrency, requests, tokens = sys.argv[1:]
    prompts = [" ".join(f"word{number}" for number in range(first, first + WORDS)) for first in range(int(requests))]
    asks = [Ask("reference", prompt, int(tokens), Api.CHAT) for prompt in prompts]
    found = run_load(Endpoint.of(url), asks, Closed(int(concurrency)), Limits(timeout_s=120))
    ttft = [result.ttft_s for result in found.valid if result.ttft_s is not None]
    tpot = [result.tpot_s for result in found.valid if result.tpot_s is not None]
    told = {
        "ttft_ms": statistics.fmean(ttft) * 1e3,
        "itl_ms": statistics.fmean(tpot) * 1e3,
        "tokens_per_s": found.output_tokens_per_s,
        "notes": "; ".join(found.against),
    }
    Path(out).write_text(json.dumps(told))


if __name__ == "__main__":
    main()
