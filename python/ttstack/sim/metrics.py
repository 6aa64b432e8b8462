"""Counters, and their text for Prometheus under vLLM's names."""

from __future__ import annotations

from dataclasses import dataclass, field

_BUCKETS_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)


@dataclass(slots=True)
class Histogram:
    """Seconds, in vLLM's buckets."""

    values: list[int] = field(default_factory=lambda: [0] * len(_BUCKETS_S))  # cumulative counts
    count: int = 0
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one value."""
        self.count += 1
        self.total += seconds
        for at, bound in enumerate(_BUCKETS_S):
            if seconds <= bound:
                self.values[at] += 1

    def lines(self, name: str, labels: str) -> list[str]:
        """Text of the histogram."""
        return [
            f"# TYPE {name} histogram",
            *(
                f'{name}_bucket{{{labels},le="{bound}"}} {float(value)}'
                for bound, value in zip(_BUCKETS_S, self.values, strict=True)
            ),
            f'{name}_bucket{{{labels},le="+Inf"}} {float(self.count)}',
            f"{name}_count{{{labels}}} {float(self.count)}",
            f"{name}_sum{{{labels}}} {self.total}",
        ]


@dataclass(slots=True)
class Metrics:
    """What the engine counts."""

    running: int = 0
    waiting: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0  # tokens
    prefix_hits: int = 0  # tokens
    finished: dict[str, int] = field(default_factory=lambda: {"stop": 0, "length": 0, "abort": 0})
    first_token: Histogram = field(default_factory=Histogram)
    prefill: Histogram = field(default_factory=Histogram)

    @property
    def served(self) -> int:
        """Number of completions that were answered to the end."""
        return self.finished["stop"] + self.finished["length"]

    def text(self, model: str) -> str:
        """Give the page /metrics."""
        quoted = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        labels = f'engine="0",model_name="{quoted}"'
        lines: list[str] = []
        for name, kind, value in (
            ("num_requests_running", "gauge", self.running),
            ("num_requests_waiting", "gauge", self.waiting),
            ("prefix_cache_queries_total", "counter", self.prefix_queries),
            ("prefix_cache_hits_total", "counter", self.prefix_hits),
            ("prompt_tokens_total", "counter", self.prompt_tokens),
            ("generation_tokens_total", "counter", self.generation_tokens),
        ):
            lines += [f"# TYPE vllm:{name} {kind}", f"vllm:{name}{{{labels}}} {float(value)}"]
        lines.append("# TYPE vllm:request_success_total counter")
        lines += [
            f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}'
            for reason, count in self.finished.items()
        ]
        lines += self.first_token.lines("vllm:time_to_first_token_seconds", labels)
        lines += self.prefill.lines("vllm:request_prefill_time_seconds", labels)
        return "\n".join(lines) + "\n"
