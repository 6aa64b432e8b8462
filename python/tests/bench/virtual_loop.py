"""An event loop whose clock moves only when nothing is left to do: waiting takes no time, and every time is exact."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

Value = TypeVar("Value")
_SETTLE_S = 0.001  # real: bytes that were written to the loopback are there by then
_MOST_S = 3600.0  # virtual: a loop that waits for nothing ends


class _Selector(selectors.BaseSelector):
    def __init__(self) -> None:
        self.now = 1000.0
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: selectors._FileObject, events: int, data: object = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: selectors._FileObject) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[selectors._FileObject, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        ready = self._real.select(_SETTLE_S)
        if not ready:
            if timeout is None or self.now > 1000.0 + _MOST_S:
                raise RuntimeError("nothing will ever happen on this loop")
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop with such a clock."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual.now


def run(work: Coroutine[None, None, Value]) -> Value:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
