"""Something that is looked at again and again in a thread of its own, so that nobody waits for a look that hangs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from ttstack.errors import TtxError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Repeat(Generic[T]):
    """Calls ``look`` every ``every_s`` seconds, counted from the beginning of each look.

    It rests at least ``rest`` times as long as the look took (60 s at most): 50 keeps one that works all that time
    below 2 % of a core, whatever it costs on this host. The thread is a daemon: a look that hangs, on a device or a
    daemon, does not keep the program from ending. ``then`` is called after each look.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[], T],
        every_s: float,
        *,
        rest: float = 0.5,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self._look = look
        self._then = then
        self._every_s = every_s
        self._rest = rest
        self._changed = threading.Condition()
        self._over = self._kicked = False
        self._fault: BaseException | None = None
        self._value: T | None = None
        self._began: float | None = None
        self._done_at: float | None = None
        self._trouble = ""
        self._looks = 0
        self._thread = threading.Thread(target=self._go_on, name=name, daemon=True)

    def start(self) -> Repeat[T]:
        """Begin; the first look is made at once."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Make no further look. One that goes on is not waited for."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def kick(self) -> None:
        """Make the next look at once, or as soon as one that goes on is over."""
        with self._changed:
            self._kicked = True
            self._changed.notify_all()

    @property
    def value(self) -> T | None:
        """What the last look that came to something showed. Raises what one raised that is no TtxError or OSError."""
        if self._fault is not None:
            raise self._fault
        return self._value

    @property
    def looks(self) -> int:
        """How many looks came to an end, for good or bad."""
        return self._looks

    @property
    def trouble(self) -> str:
        """Why the last look came to nothing; "" when it did come to something."""
        return self._trouble

    @property
    def late_s(self) -> float:
        """For how long a look has been going on, seconds; 0 when none is."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def _go_on(self) -> None:
        while not self._over:
            began = self._began = time.monotonic()
            try:
                self._value, self._trouble = self._look(), ""
            except TtxError as error:
                self._trouble = error.message
            except OSError as error:
                self._trouble = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            except BaseException as error:  # noqa: BLE001 - a fault of ours: whoever asks for the value is told
                self._fault = error
                return
            done = time.monotonic()
            self._began = None
            self._looks += 1
            self._then()
            self._pause(max(began + self._every_s, done + min(60.0, self._rest * (done - began))))

    def _pause(self, until: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._kicked, max(0.0, until - time.monotonic()))
            self._kicked = False
