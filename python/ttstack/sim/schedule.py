"""The timing model: a batch with so many places, one prefill at a time, tokens at a steady pace."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ttstack.sim.errors import EngineDeadError, GoneError
from ttstack.sim.metrics import Metrics
from ttstack.sim.prefix import PrefixCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ttstack.sim.flags import Settings

_LOOK_S = 0.05  # how often a sleeping request looks whether its engine lives and its client is there


class Schedule:
    """Who may compute when. Places and prefills are given in the order of the requests."""

    def __init__(self, settings: Settings, kv_blocks: int) -> None:
        self.metrics = Metrics()
        self.dead = False
        self._timing = settings.timing
        self._places = asyncio.Semaphore(settings.max_batch)
        self._prefill = asyncio.Lock()
        self._prefix = PrefixCache(settings.block_size, kv_blocks) if settings.prefix_caching else None

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place in the batch and hold it."""
        self.metrics.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.metrics.waiting -= 1
        self.metrics.running += 1
        try:
            yield
        finally:
            self.metrics.running -= 1
            self._places.release()

    async def prefill(self, prompt: tuple[int, ...], gone: Callable[[], bool]) -> int:
        """Compute the prompt; return how many of its tokens were cached. Raises EngineDeadError, GoneError."""
        loop = asyncio.get_running_loop()
        async with self._prefill:
            began = loop.time()
            cached = self._prefix.take(prompt) if self._prefix is not None else 0
            self.metrics.prompt_tokens += len(prompt)
            if self._prefix is not None:
                self.metrics.prefix_queries += len(prompt)
                self.metrics.prefix_hits += cached
            rate = self._timing.prefill_rate
            await self.until(began + ((len(prompt) - cached) / rate if rate else 0), gone)
            self.metrics.prefill.add(loop.time() - began)
        return cached

    async def until(self, when: float, gone: Callable[[], bool]) -> None:
        """Sleep until a time of the loop's clock. Raises EngineDeadError, GoneError."""
        loop = asyncio.get_running_loop()
        while True:
            if self.dead:
                raise EngineDeadError("EngineCore encountered an issue. See stack trace (above) for the root cause.")
            if gone():
                raise GoneError("the client hung up")
            left = when - loop.time()
            if left <= 0:
                return
            await asyncio.sleep(min(left, _LOOK_S))

    async def steps(self, count: int, gone: Callable[[], bool]) -> AsyncIterator[tuple[int, int]]:
        """Give (first, end) of each run of tokens as it is ready: the first at once, each later one in its time.

        Raises EngineDeadError, GoneError.
        """
        loop = asyncio.get_running_loop()
        began, at, size = loop.time(), 0, self._timing.tokens_per_chunk
        while at < count:
            end = min(at + size, count)
            # A run is shown with its last token; the first token of all is made by the prefill.
            await self.until(began + (end - 1) * self._timing.token_ms / 1000, gone)
            self.metrics.generation_tokens += end - at
            yield at, end
            at = end
            if not self._timing.token_ms:
                await asyncio.sleep(0)
