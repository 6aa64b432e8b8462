"""SIGINT, SIGTERM and SIGHUP as a wish, granted where it is safe: no engine and no slot is left behind."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from ttstack.run.errors import InterruptedRunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While entered, the first signal is remembered and later ones change nothing, not even afterwards.

    Main thread only.
    """

    def __init__(self) -> None:
        self._seen = ""
        self._breaking = False
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.getsignal(number)
            signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            # Who was asked to end is about to: a signal more must not spoil what is told on the way out.
            signal.signal(number, signal.SIG_IGN if self._seen else before or signal.SIG_DFL)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._seen = self._seen or signal.Signals(number).name
        if self._breaking:
            self._breaking = False  # once is enough: a second Ctrl-C must not break the tidying up
            raise self._error()

    def _error(self) -> InterruptedRunError:
        return InterruptedRunError(f"stopped by {self._seen}")

    def check(self) -> None:
        """Raise InterruptedRunError if a signal has come."""
        if self._seen:
            raise self._error()

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Let a signal break what runs inside at once: only for what holds nothing, such as a request that waits."""
        self._breaking = True
        try:
            self.check()
            yield
        finally:
            self._breaking = False
