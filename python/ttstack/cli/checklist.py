"""The checklist of a run, on stderr: a live one on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from ttstack.printable import printable
from ttstack.run.texts import STEPS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rich.console import Console, RenderableType

    from ttstack.run.report import Reporter

PHASES = {
    "check": "what is asked can be run",
    "slot": "cards",
    "cache": "tensor cache: there, or room for it",
    "boot": "engine",
    "identify": "what runs is what was asked",
    "measure": "suite",
    "stop": "engine stopped, cards given back",
}


@contextmanager
def checklist(title: str, stream: TextIO | None = None, phases: Collection[str] = PHASES) -> Iterator[Reporter]:
    """Give a reporter that shows a run, with these phases, while it goes on."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield Plain(title, stream)
        return
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415

    console = Console(file=stream, highlight=False)
    if console.is_dumb_terminal:
        yield Plain(title, stream)
        return
    board = Board(title, console, phases)
    with Live(board, console=console, refresh_per_second=8, transient=False):
        yield board


class Plain:
    """One line for each thing that happened."""

    def __init__(self, title: str, stream: TextIO) -> None:
        self._stream = stream
        self._phase = ""
        self._heard = True
        self._say(title)

    def _say(self, text: str) -> None:
        if not self._heard:
            return
        try:
            print(printable(text), file=self._stream, flush=True)
        except (OSError, ValueError):
            self._heard = False  # the reader went away; the run goes on

    def begin(self, phase: str) -> None:
        """See ``Reporter``."""
        self._phase = phase

    def detail(self, text: str) -> None:
        """See ``Reporter``."""
        self._say(f"  {self._phase}: {text}")

    def check(self, name: str, *, ok: bool | None, detail: str = "") -> None:
        """See ``Reporter``."""
        mark = {True: "ok", False: "NO", None: "??"}[ok]
        self._say(f"  {self._phase}: {mark} {_titled(name, detail)}")

    def end(self, phase: str, *, ok: bool, seconds: float) -> None:
        """See ``Reporter``."""
        self._say(f"{phase:<9} {'ok' if ok else 'FAILED'} {seconds:.2f} s")

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """See ``Reporter``."""
        for line in [f"{title}:", *(f"  | {line.expandtabs()}" for line in lines)]:
            self._say(line)


def _titled(name: str, detail: str) -> str:
    """Put a check's name before what it has to say, unless that begins with it."""
    return (detail if detail.startswith(f"{name} ") else f"{name}: {detail}") if detail else name


@dataclass(slots=True)
class _Row:
    begun: float
    detail: str = ""
    seconds: float | None = None
    ok: bool | None = None
    good: int = 0
    bad: list[str] = field(default_factory=list)


class Board:
    """A table that is drawn anew; rich calls ``__rich__`` from its own thread."""

    def __init__(self, title: str, console: Console, phases: Collection[str] = PHASES) -> None:
        self._title = printable(title)
        self._console = console
        self._phases = phases
        self._rows: dict[str, _Row] = {}
        self._phase = ""

    def begin(self, phase: str) -> None:
        """See ``Reporter``."""
        self._rows[phase] = _Row(time.monotonic())
        self._phase = phase

    def detail(self, text: str) -> None:
        """See ``Reporter``."""
        steps = list(STEPS)
        at = f" ({steps.index(text) + 1}/{len(steps)})" if text in steps else ""
        self._rows[self._phase].detail = f"{printable(text)}{at}"

    def check(self, name: str, *, ok: bool | None, detail: str = "") -> None:
        """See ``Reporter``."""
        row = self._rows[self._phase]
        if ok:
            row.good += 1
        else:
            row.bad.append(printable(_titled(name, detail)))
        row.detail = f"{row.good} of {row.good + len(row.bad)} checks"

    def end(self, phase: str, *, ok: bool, seconds: float) -> None:
        """See ``Reporter``."""
        row = self._rows[phase]
        row.ok, row.seconds = ok, seconds

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """See ``Reporter``."""
        self._console.print(f"{title}:", style="bold", markup=False)
        for line in lines:
            self._console.print(f"  {printable(line.expandtabs())}", style="dim", markup=False)

    def __rich__(self) -> RenderableType:
        from rich.console import Group  # noqa: PLC0415 - rich is here already
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table.grid(padding=(0, 2))
        for phase in self._phases:
            what = PHASES[phase]
            row = self._rows.get(phase)
            if row is None:
                table.add_row(Text("·", style="dim"), Text(phase, style="dim"), "", Text(what, style="dim"))
                continue
            mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("▸", "yellow")}[row.ok]
            seconds = time.monotonic() - row.begun if row.seconds is None else row.seconds
            table.add_row(
                Text(mark, style=style), phase, Text(f"{seconds:.1f} s"), Text(row.detail or what, overflow="fold")
            )
            for bad in row.bad:
                table.add_row("", "", Text("no", style="red"), Text(bad, overflow="fold"))
        return Group(Text(self._title, style="bold"), table)
