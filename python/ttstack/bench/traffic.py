"""What a server of vLLM's metrics is doing now, from its counters as they were read one time after the other."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.metrics import increase, largest, mean, quantile, read_page, total

if TYPE_CHECKING:
    from ttstack.bench.metrics import Page

WINDOW_S = 60.0  # what is told of requests is of those of the last minute
_APART_S = 1.0
LARGEST = 8 << 20  # bytes; vLLM's page has some 100 kB

# vLLM's docs/usage/metrics.md; where there are several names the first is the newest.
_PROMPT = ("vllm:prompt_tokens_total",)
_GENERATION = ("vllm:generation_tokens_total",)
_RUNNING = ("vllm:num_requests_running",)
_WAITING = ("vllm:num_requests_waiting",)
_KV_USE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
_HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
_FIRST_TOKEN = ("vllm:time_to_first_token_seconds",)
_BETWEEN = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
# When a counter, or the process, began (OpenMetrics): another value is another server, however much it has counted.
_BORN = ("vllm:generation_tokens_created", "process_start_time_seconds")
_PARTS = [f"{name}_{part}" for name in (*_FIRST_TOKEN, *_BETWEEN) for part in ("bucket", "sum", "count")]
_WANTED = frozenset([*_PROMPT, *_GENERATION, *_RUNNING, *_WAITING, *_KV_USE, *_QUERIES, *_HITS, *_BORN, *_PARTS])


@dataclass(frozen=True, slots=True)
class Traffic:
    """What it does now. None: not known, as the server does not tell, or it takes another reading to know."""

    prompt_tokens_per_s: float | None = None  # between the last two readings; a prompt counts when its prefill is done
    generation_tokens_per_s: float | None = None
    running: float | None = None  # requests
    waiting: float | None = None
    kv_use: float | None = None  # share of the KV cache, 0 to 1, of the fullest of several engines
    prefix_hits: float | None = None  # share of prompt tokens, 0 to 1, within the window
    first_token_s: float | None = None  # the median within the window, as far as the buckets tell
    between_tokens_s: float | None = None  # the mean within the window
    prompt_tokens: float | None = None  # since the server began
    generation_tokens: float | None = None


class History:
    """The readings of one server, in order."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._last: tuple[float, Page] | None = None
        self._window: deque[tuple[float, Page]] = deque()  # one a second or fewer, whatever is read

    def note(self, at: float, text: str) -> Traffic:
        """Note a reading that came at this time (s, of a clock that never goes back), and say what it means."""
        page = read_page(text, _WANTED)
        if self._last is not None and (at <= self._last[0] or _began_anew(self._last[1], page)):
            self._last = None
            self._window.clear()
        while len(self._window) > 1 and at - self._window[0][0] > self._window_s:
            self._window.popleft()
        before, first = self._last, self._window[0][1] if self._window else {}
        self._last = (at, page)
        if not self._window or at - self._window[-1][0] >= _APART_S:
            self._window.append(self._last)
        told = {
            "prompt_tokens_per_s": _rate(before, at, page, _PROMPT),
            "generation_tokens_per_s": _rate(before, at, page, _GENERATION),
            "running": total(page, *_RUNNING),
            "waiting": total(page, *_WAITING),
            "kv_use": largest(page, *_KV_USE),
            "prefix_hits": _share(first, page),
            "first_token_s": quantile(first, page, 0.5, *_FIRST_TOKEN) if first else None,
            "between_tokens_s": mean(first, page, *_BETWEEN),
            "prompt_tokens": total(page, *_PROMPT),
            "generation_tokens": total(page, *_GENERATION),
        }
        # Numbers that are none come of sums that are too large, which no server of tokens has.
        return Traffic(**{name: value for name, value in told.items() if value is not None and math.isfinite(value)})


def _began_anew(before: Page, after: Page) -> bool:
    if any(before.get(name) != after.get(name) for name in _BORN):
        return True
    # A server has all of these or none, so one that is not there any more is another server's.
    return any(name in before and increase(before, after, name) is None for name in (*_PROMPT, *_GENERATION))


def _rate(before: tuple[float, Page] | None, at: float, page: Page, names: tuple[str, ...]) -> float | None:
    if before is None:
        return None
    rise = increase(before[1], page, *names)
    return None if rise is None else rise / (at - before[0])


def _share(before: Page, after: Page) -> float | None:
    queries, hits = increase(before, after, *_QUERIES), increase(before, after, *_HITS)
    return min(1.0, hits / queries) if queries and hits is not None else None
