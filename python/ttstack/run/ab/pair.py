"""The runs of one pair as children, from their start to their end."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ttstack.run.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ttstack.run.ab.cell import CellOrder

_LOOK_S = 0.2  # between two looks whether a signal has come

Side = Literal["A", "B"]


class AbReporter(Protocol):
    """Told of everything, in order. It is not told a single measured value: who sees them is tempted to stop."""

    def warm_up(self, side: Side, order: CellOrder) -> None:
        """Hear that an arm is run once before the first pair, to build its tensor cache."""

    def pair(self, number: int, orders: Mapping[Side, CellOrder], attempt: int) -> None:
        """Hear that a pair begins."""

    def cell(self, side: Side, event: Mapping[str, Any]) -> None:
        """Hear what a run tells, see ``ttstack.run.ab.cell``."""

    def counted(self, number: int, against: Sequence[str]) -> None:
        """Hear that a pair is over, and why it does not count, if it does not."""


@dataclass(frozen=True, slots=True)
class Over:
    """How a run ended."""

    run: str
    exit_code: int
    text: str


@dataclass(slots=True)
class _Child:
    side: Side
    popen: subprocess.Popen[bytes]
    waiting: bool = False
    text: bytes = b""
    over: Mapping[str, Any] | None = None  # its last word
    said: str = ""  # the last line that is no event, such as that of a traceback
    closed: bool = False

    def close(self) -> None:
        """Let go of its pipes."""
        self.closed = True
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def go(self) -> None:
        """Let it go on from its barrier."""
        self.waiting = False
        if self.popen.stdin is not None:
            with suppress(OSError):  # gone: its pipe will say so
                self.popen.stdin.write(b"go\n")
                self.popen.stdin.flush()


def run_cells(
    command: Sequence[str],
    orders: Mapping[Side, CellOrder],
    reporter: AbReporter,
    check: Callable[[], None],
    *,
    environ: Mapping[str, str],
) -> Mapping[Side, Over]:
    """Run these at once, to their ends, and say how each ended.

    ``check`` raises InterruptedRunError when all is to end. They are then asked to end, and waited for, as each stops
    its engine in order. Raises RunError for one that ended without a record.
    """
    children: list[_Child] = []
    try:
        for side, order in orders.items():
            children.append(_Child(side, _start(command, order, environ)))
        _follow(children, reporter, check)
    except BaseException:
        _end(children, reporter)
        raise
    finally:
        for child in children:
            child.close()
    found: dict[Side, Over] = {}
    for child in children:
        code = child.popen.wait()
        if child.over is None:
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            last = f": {child.said}" if child.said else ""
            raise RunError(f"the run of arm {child.side} ended without a result ({how}){last}", reason="cell_died")
        if not child.over["run"]:
            raise RunError(f"arm {child.side} could not be run: {child.over['text']}", reason="cell_failed")
        found[child.side] = Over(child.over["run"], child.over["exit_code"], child.over["text"])
    return found


def _start(command: Sequence[str], order: CellOrder, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [*command, order.to_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            process_group=0,  # Ctrl-C is for its owner, who passes it on once
        )
    except OSError as error:
        raise RunError(f"cannot start a run: {error.strerror}", reason="cell_died") from error


def _follow(children: Sequence[_Child], reporter: AbReporter, check: Callable[[], None]) -> None:
    with selectors.DefaultSelector() as selector:
        for child in children:
            if child.popen.stdout is not None and not child.closed:
                selector.register(child.popen.stdout, selectors.EVENT_READ, child)
        while selector.get_map():
            check()
            for key, _ in selector.select(_LOOK_S):
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                    key.data.closed = True
                    continue
                _hear(key.data, data, reporter)
            living = [child for child in children if not child.closed]
            # Nobody is waited for who cannot come any more.
            if living and all(child.waiting for child in living):
                for child in living:
                    child.go()


def _hear(child: _Child, data: bytes, reporter: AbReporter) -> None:
    *lines, child.text = (child.text + data).split(b"\n")
    for line in lines:
        event = _event(line)
        if event is None:
            child.said = line.decode("utf-8", "replace").strip() or child.said
            continue
        if event["event"] == "wait":
            child.waiting = True
        elif event["event"] == "over":
            child.over = event
        reporter.cell(child.side, event)


def _event(line: bytes) -> Mapping[str, Any] | None:
    """Read an event; None for what else was printed, which is for people."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _end(children: Sequence[_Child], reporter: AbReporter) -> None:
    """Ask those that live to end, once, and wait for it: they stop their engines."""
    for child in children:
        if child.popen.poll() is None:
            child.popen.send_signal(signal.SIGINT)
            child.waiting = False
            child.go()  # should it be at a barrier; it looks for the signal first
    _follow(children, reporter, lambda: None)
    for child in children:
        child.popen.wait()
