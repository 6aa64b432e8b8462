"""What the client itself does while it measures: how late its loop wakes up, how much of a core it takes."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Lag

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

_EVERY_S = 0.05


class Watch:
    """Asks the loop to be woken at known times and notes how late it was. Begins at once; ``stop`` gives the facts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._late: list[float] = []
        self._cpu = time.process_time()
        self._due = loop.time() + _EVERY_S
        self._timer = loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        now = self._loop.time()
        self._late.append(now - self._due)
        self._due = now + _EVERY_S
        self._timer = self._loop.call_at(self._due, self._tick)

    def stop(self) -> tuple[Lag, float]:
        """Give the lag, and the CPU seconds of this process since the beginning."""
        self._timer.cancel()
        # A loop that never came back is as late as it is now.
        self._late.append(max(0.0, self._loop.time() - self._due))
        return lag_of(self._late), time.process_time() - self._cpu


def lag_of(late: Sequence[float]) -> Lag:
    """Sum up lateness, s. The percentile is the sample at that rank (nearest rank), so it was really seen."""
    ranked = sorted(late)
    return Lag(_at(ranked, 0.5), _at(ranked, 0.99), ranked[-1], len(ranked))


def _at(ranked: Sequence[float], share: float) -> float:
    return ranked[max(0, -(-int(share * 1000) * len(ranked) // 1000) - 1)]


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from stopping the loop; it runs before and after."""
    was = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()
