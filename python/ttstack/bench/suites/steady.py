"""The steady part of a closed loop: without the first wave, which is a burst, and without the end, which runs dry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.bench.client.types import Result


@dataclass(frozen=True, slots=True)
class Steady:
    """The window (s since the load began) and what was in it."""

    begin: float
    end: float
    measured: tuple[Result, ...]  # neither of the first wave, nor over after the window
    tokens_per_s: float


def steady_window(results: Sequence[Result], concurrency: int) -> Steady | None:
    """Find the window of a closed loop whose ``results`` are valid; None when there is none.

    It begins when the last request of the first wave (the first ``concurrency``, which all began at once) is over, and
    ends with the first request that is over after the last one was sent: until then as many run as are meant to.
    """
    ends = {result.number: result.last_at for result in results if result.last_at is not None}
    sends = [result.sent for result in results if result.sent is not None]
    first_wave = [end for number, end in ends.items() if number < concurrency]
    later = [end for end in ends.values() if sends and end > max(sends)]
    if not first_wave or not later or min(later) <= max(first_wave):
        return None
    begin, end = max(first_wave), min(later)
    measured = tuple(
        result for result in results if result.number >= concurrency and ends.get(result.number, end + 1) <= end
    )
    tokens = sum(tokens_within(result, begin, end) for result in results)
    return Steady(begin, end, measured, tokens / (end - begin)) if measured else None


def tokens_within(result: Result, begin: float, end: float) -> float:
    """Count the tokens that were read after ``begin`` and until ``end``.

    Where the server does not say how many an event brings, each brings an equal share.
    """
    if result.usage is None or not result.chunks:
        return 0.0
    share = result.usage.completion / len(result.chunks)
    counted = result.counted
    return sum((chunk.tokens or 0) if counted else share for chunk in result.chunks if begin < chunk.at <= end)


def goodput_share(results: Sequence[Result], ttft_s: float, tpot_s: float) -> float:
    """Give the share of requests that kept both limits; a request of one token has no TPOT to keep."""
    kept = [
        result.ttft_s is not None and result.ttft_s <= ttft_s and (result.tpot_s is None or result.tpot_s <= tpot_s)
        for result in results
    ]
    return sum(kept) / len(kept)
