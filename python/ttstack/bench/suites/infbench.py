"""One request at a time, then more and more at once: PP, TG, throughput, and goodput against a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Closed
from ttstack.bench.suites.answers import keep_answers
from ttstack.bench.suites.session import Session
from ttstack.bench.suites.settings import setting
from ttstack.bench.suites.steady import goodput_share, steady_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.bench.client.types import LoadResult, Result
    from ttstack.bench.suites.cells import Values
    from ttstack.bench.suites.session import Listener, Target
    from ttstack.records.types import Json, Measured

UNKNOWN_MOST = 32  # requests at once, where nobody says how many the server computes


@dataclass(frozen=True, slots=True)
class Infbench:
    """The suite's settings.

    The default limits are those of MLPerf Inference for Llama 2 70B, scenario Server: 2 s to the first token, 200 ms a
    token (mlcommons/inference_policies, inference_rules.adoc).
    """

    prompt_tokens: int = setting(1024, "tokens of each prompt", least=1)
    output_tokens: int = setting(128, "tokens of each answer", least=2)
    runs: int = setting(5, "measured requests at B=1", least=3)
    warmup_runs: int = setting(1, "requests of the same length before them, with other prompts", least=0)
    concurrency: tuple[int, ...] = setting((), "requests at once; empty: 1, 2, 4, ... up to max_concurrency", least=1)
    max_concurrency: int = setting(0, f"0: the arm's max-num-seqs, or {UNKNOWN_MOST} where that is not known", least=0)
    waves: int = setting(5, "requests of each concurrency, as a multiple of it; the first wave is dropped", least=3)
    ttft_s: float = setting(2.0, "limit of the time to the first token, for goodput", least=0)
    tpot_s: float = setting(0.2, "limit of the time per token after it, for goodput", least=0)
    seed: str = setting("", "of the prompts; empty takes a new one")
    timeout_s: float = setting(600.0, "of each request", least=0.001)


def run_infbench(target: Target, settings: Infbench, listener: Listener) -> Measured:
    """Measure the cell ``b1``, and a cell ``c<N>`` for each number of requests at once.

    The cells ``c<N>`` are closed loops. Requests of the first wave, and those that end after the load begins to run
    dry, are sent but not measured. Beside the samples of requests: ``tokens_per_s`` of the steady window,
    ``goodput_share`` of the measured requests and ``goodput_requests_per_s``.
    """
    session = Session(target, listener, settings.timeout_s, settings.seed)
    keep_answers(session)
    _single(session, settings)
    counts = concurrencies(settings, target.max_num_seqs)
    for count in counts:
        _several(session, settings, count)
    return session.measured("infbench", settings, more={"concurrency": list(counts)})


def concurrencies(settings: Infbench, max_num_seqs: int | None) -> tuple[int, ...]:
    """Say how many requests at once: powers of two, and the most."""
    if settings.concurrency:
        return settings.concurrency
    most = settings.max_concurrency or max_num_seqs or UNKNOWN_MOST
    powers = [1 << power for power in range(most.bit_length())]
    return tuple(powers if powers[-1] == most else [*powers, most])


def _single(session: Session, settings: Infbench) -> None:
    name, size, tokens = "b1", settings.prompt_tokens, settings.output_tokens
    shape: dict[str, Json] = {"prompt_tokens": size, "output_tokens": tokens, "concurrency": 1, "runs": settings.runs}
    why = session.target.lacks_room(size, tokens)
    if why:
        session.leave_out(name, shape, why)
        return
    session.cell(
        name,
        shape,
        warm_up=session.warm_up(name, settings.warmup_runs, size, tokens),
        asks=session.asks(name, settings.runs, size, tokens),
        pattern=Closed(1),
    )


def _several(session: Session, settings: Infbench, count: int) -> None:
    name, size, tokens = f"c{count}", settings.prompt_tokens, settings.output_tokens
    shape: dict[str, Json] = {
        "prompt_tokens": size,
        "output_tokens": tokens,
        "concurrency": count,
        "pattern": "closed",
        "waves": settings.waves,
    }
    why = session.target.lacks_room(size, tokens)
    if why:
        session.leave_out(name, shape, why)
        return

    def choose(load: LoadResult) -> tuple[Sequence[Result], Values, Sequence[str]]:
        steady = steady_window(load.valid, count)
        if steady is None:
            return (), {}, ("there is no steady window",)
        share = goodput_share(steady.measured, settings.ttft_s, settings.tpot_s)
        values = {
            "tokens_per_s": (round(steady.tokens_per_s, 6),),
            "goodput_share": (share,),
            "goodput_requests_per_s": (round(share * steady.tokens_per_s / tokens, 6),),
            "window_s": (round(steady.end - steady.begin, 7),),
        }
        return steady.measured, values, ()

    warm = session.warm_up(name, count if settings.warmup_runs else 0, size, tokens)
    asks = session.asks(name, count * settings.waves, size, tokens)
    session.cell(name, shape, warm_up=warm, asks=asks, pattern=Closed(count), choose=choose)
