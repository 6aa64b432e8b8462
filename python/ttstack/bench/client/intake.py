"""Answers that are over, kept as bytes until reading them disturbs nobody."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import TYPE_CHECKING

from ttstack.bench.client.result import read_in_steps, read_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.bench.client.result import Taken
    from ttstack.bench.client.types import Result, VoidReason

MOST_HELD = 512 << 20  # bytes of answers that are not read yet
_PAUSE_S = 0.001  # between the steps of reading an answer while others still come


class Intake:
    """Takes answers; reads them at the end, or soon when somebody waits for them or too many bytes pile up."""

    def __init__(self, secret: str, on_result: Callable[[Result], None] | None) -> None:
        self._secret = secret
        self._on_result = on_result
        self._over: deque[Taken] = deque()
        self._held = 0
        self._results: list[Result] = []
        self._reader: asyncio.Task[None] | None = None
        self.began = 0.0  # zero of all times
        self.count = 0
        self.voids: Counter[VoidReason] = Counter()
        self.may_hit_cache = True

    def take(self, taken: Taken) -> None:
        """Take one answer."""
        self.count += 1
        self.may_hit_cache = self.may_hit_cache and taken.ask.may_hit_cache
        self._over.append(taken)
        self._held += taken.wire.bytes_read if taken.wire is not None else 0
        if self._reader is not None and self._reader.done():
            self._reader.result()  # what the listener raised ends the load
            self._reader = None
        if self._reader is None and (self._on_result is not None or self._held > MOST_HELD):
            self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while self._over:
            taken = self._over.popleft()
            self._held -= taken.wire.bytes_read if taken.wire is not None else 0
            steps = read_in_steps(taken, self.began, self._secret)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    self._note(end.value)
                    break
                await asyncio.sleep(_PAUSE_S)

    def _note(self, result: Result) -> None:
        if result.void is not None:
            self.voids[result.void.reason] += 1
        if self._on_result is not None:
            self._on_result(result)
        else:
            self._results.append(result)

    async def finish(self) -> tuple[Result, ...]:
        """Read what is left; give the results in the order of their numbers, or none when they were handed over."""
        if self._reader is not None:
            await self._reader
        while self._over:
            self._note(read_result(self._over.popleft(), self.began, self._secret))
        return tuple(sorted(self._results, key=lambda result: result.number))
