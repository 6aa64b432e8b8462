"""The terminal of ``ttx top``: taken at the beginning, given back as it was at any end."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleDimensions, Group
from rich.control import Control
from rich.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType
    from typing import TypeAlias

    from rich.text import Text

    Draw: TypeAlias = Callable[[int, int], Sequence[Text]]
    """Gives the lines of a screen that is so wide and so high."""

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
_FIRST_S = 0.2  # after which the first screen is drawn anew: by then something is known


def show(draw: Draw, every_s: float) -> None:
    """Draw every so many seconds until ``q``, Ctrl-C or the end of stdin.

    SIGTERM and SIGHUP end this process, after the terminal was given back; SIGTSTP (Ctrl-Z) stops it likewise.
    """
    with ExitStack() as stack:
        heard = stack.enter_context(_heard())
        terminal = stack.enter_context(_Terminal())
        due = time.monotonic() + min(every_s, _FIRST_S)
        while True:
            terminal.draw(draw)
            due = max(due, time.monotonic())
            ended = _wait(terminal, heard, due, draw)
            if ended is None:
                due += every_s
                continue
            break
    if ended in {signal.SIGTERM, signal.SIGHUP}:
        signal.signal(ended, signal.SIG_DFL)
        os.kill(os.getpid(), ended)


def _wait(terminal: _Terminal, heard: int, due: float, draw: Draw) -> int | None:
    """Wait for the next drawing: None; else say what ended it, a signal's number or 0 for a key."""
    while True:
        keys = terminal.keys
        ready, _, _ = select.select([heard, *keys], [], [], max(0.0, due - time.monotonic()))
        if not ready:
            return None
        for number in os.read(heard, 64) if heard in ready else b"":
            if number in {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}:
                return number
            if number == signal.SIGTSTP:
                terminal.suspend()
            terminal.draw(draw)
        if set(keys) & set(ready):
            typed = os.read(keys[0], 64)
            if not typed or (not typed.startswith(b"\x1b") and b"q" in typed.lower()):
                return 0


@contextmanager
def _heard() -> Iterator[int]:
    """Have signals come as bytes of a pipe: nothing is interrupted half way, whatever it is."""
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = {number: signal.getsignal(number) for number in _HEARD}
    waking = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        for number, was in before.items():
            if was is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, _nothing)
        yield read
    finally:
        for number, was in before.items():
            signal.signal(number, was)
        signal.set_wakeup_fd(waking)
        os.close(read)
        os.close(write)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Be a handler, without which the kernel would do as it does by default."""


class _Terminal:
    """Its other screen, without a cursor; keys come one by one and are not shown."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False, force_terminal=True)
        stdin = sys.stdin.fileno()
        self.keys = [stdin] if os.isatty(stdin) else []
        self._mode = termios.tcgetattr(stdin) if self.keys else None

    def __enter__(self) -> Self:
        try:
            self._take()
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def draw(self, draw: Draw) -> None:
        """Draw a screen of the size that the terminal has now."""
        try:
            width, height = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            width, height = 0, 0
        width, height = width or 80, height or 24  # a terminal that was never told its size
        self._console.size = ConsoleDimensions(width, height)
        with self._console:  # all in one write
            self._console.control(Control.home())
            self._console.print(Screen(Group(*draw(width, height))), end="")

    def suspend(self) -> None:
        """Give the terminal back, stop as Ctrl-Z would have it, and take it again once we are to go on."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    def _take(self) -> None:
        if self.keys:
            tty.setcbreak(self.keys[0], termios.TCSADRAIN)
        self._console.set_alt_screen()
        self._console.show_cursor(show=False)

    def _give_back(self) -> None:
        with suppress(OSError, ValueError):  # a terminal that is gone
            self._console.show_cursor()
            self._console.set_alt_screen(enable=False)
        if self._mode is not None:
            with suppress(termios.error):
                termios.tcsetattr(self.keys[0], termios.TCSADRAIN, self._mode)
