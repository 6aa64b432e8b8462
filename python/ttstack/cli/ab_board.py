"""An A/B while it goes on, on stderr: a live table on a terminal, plain lines anywhere else.

No measured value is in it: who sees them is tempted to stop when he likes them.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from ttstack.run.ab.cell import CellOrder
    from ttstack.run.ab.pair import AbReporter, Side


@contextmanager
def ab_board(title: str, pairs: int, stream: TextIO | None = None) -> Iterator[AbReporter]:
    """Give a reporter that shows an A/B while it goes on."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield PlainAb(title, pairs, stream)
        return
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415

    console = Console(file=stream, highlight=False)
    if console.is_dumb_terminal:
        yield PlainAb(title, pairs, stream)
        return
    board = LiveAb(title, pairs)
    with Live(board, console=console, refresh_per_second=4, transient=False):
        yield board


class PlainAb:
    """A line for each phase of each run."""

    def __init__(self, title: str, pairs: int, stream: TextIO) -> None:
        self._pairs = pairs
        self._stream = stream
        self._heard = True
        self._number = 0
        self._say(title)

    def _say(self, text: str) -> None:
        if not self._heard:
            return
        try:
            print(printable(text), file=self._stream, flush=True)
        except (OSError, ValueError):
            self._heard = False  # the reader went away; the A/B goes on

    def warm_up(self, side: Side, order: CellOrder) -> None:
        """See ``AbReporter``."""
        self._say(f"before the pairs: {side} {order.name} builds its tensor cache on {','.join(order.cards)}")

    def pair(self, number: int, orders: Mapping[Side, CellOrder], attempt: int) -> None:
        """See ``AbReporter``."""
        self._number = number + 1
        runs = ", ".join(f"{side} {order.name} on {','.join(order.cards)}" for side, order in orders.items())
        again = f", attempt {attempt + 1}" if attempt else ""
        self._say(f"pair {self._number}/{self._pairs}{again}: {runs}")

    def cell(self, side: Side, event: Mapping[str, Any]) -> None:
        """See ``AbReporter``."""
        where = f"  {self._number or ''}{side}"
        if event["event"] == "end":
            self._say(f"{where} {event['phase']:<9} {'ok' if event['ok'] else 'FAILED'} {event['seconds']:.2f} s")
        elif event["event"] == "check" and event["ok"] is not True:
            self._say(f"{where} NO {event['name']}: {event['detail']}")
        elif event["event"] == "over":
            text = f": {event['text']}" if event["text"] else ""
            self._say(f"{where} over, exit {event['exit_code']}, {event['run'] or 'no record'}{text}")

    def counted(self, number: int, against: Sequence[str]) -> None:
        """See ``AbReporter``."""
        self._say(f"pair {number + 1}/{self._pairs} {verdict_of(against)}")


def verdict_of(against: Sequence[str]) -> str:
    """Say whether a pair counts."""
    return f"does not count: {'; '.join(against)}" if against else "counts"


@dataclass(slots=True)
class _Run:
    text: str
    begun: float
    now: str = "starts"
    phase: str = ""


class LiveAb:
    """A table that is drawn anew; rich calls ``__rich__`` from its own thread."""

    def __init__(self, title: str, pairs: int) -> None:
        self._title = printable(title)
        self._pairs = pairs
        self._begun = time.monotonic()
        self._over: dict[int, str] = {}
        self._number = 0
        self._runs: dict[str, _Run] = {}

    def warm_up(self, side: Side, order: CellOrder) -> None:
        """See ``AbReporter``."""
        self._runs = {side: _Run(f"{side} {order.name} builds its tensor cache", time.monotonic())}

    def pair(self, number: int, orders: Mapping[Side, CellOrder], attempt: int) -> None:
        """See ``AbReporter``."""
        if self._number != number + 1 or attempt:
            self._runs = {}
        self._number = number + 1
        for side, order in orders.items():
            text = printable(f"{side} {order.name} on {','.join(order.cards)}")
            self._runs[side] = _Run(text, time.monotonic())

    def cell(self, side: Side, event: Mapping[str, Any]) -> None:
        """See ``AbReporter``."""
        run = self._runs[side]
        kind = event["event"]
        if kind == "begin":
            run.phase = run.now = str(event["phase"])
        elif kind == "detail":
            run.now = f"{run.phase}: {printable(str(event['text']))}"
        elif kind == "wait":
            run.now = f"waits for the other one {event['what']}"
        elif kind == "over":
            run.now = f"over, exit {event['exit_code']} {printable(str(event['text']))}"

    def counted(self, number: int, against: Sequence[str]) -> None:
        """See ``AbReporter``."""
        self._over[number] = verdict_of(against)

    def __rich__(self) -> RenderableType:
        from rich.console import Group  # noqa: PLC0415 - rich is here already
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table.grid(padding=(0, 2))
        for number, text in self._over.items():
            good = text == "counts"
            mark = Text("✓", style="green") if good else Text("✗", style="red")
            table.add_row(mark, f"pair {number + 1}", Text(printable(text), overflow="fold"))
        if self._runs and self._number - 1 not in self._over:
            table.add_row(Text("▸", style="yellow"), f"pair {self._number}" if self._number else "before", "")
            for run in self._runs.values():
                seconds = time.monotonic() - run.begun
                table.add_row("", Text(f"{seconds:.0f} s"), Text(f"{run.text}: {run.now}", overflow="fold"))
        done = f"{len(self._over)} of {self._pairs} pairs, {time.monotonic() - self._begun:.0f} s"
        return Group(Text(self._title, style="bold"), table, Text(done, style="dim"))
