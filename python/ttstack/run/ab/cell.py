"""One run of an A/B as a child: what it is told, and how it and its owner talk.

The child is told a ``CellOrder`` in its last argument. It writes events to its stdout, one JSON object a line, and at a
barrier waits for a line on its stdin, so that two runs at once are measured at the same time and neither meets the
boot or the stop of the other.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ttstack.records.context import AbPlace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.records.types import Json
    from ttstack.run.flow import Result

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True, slots=True)
class CellOrder:
    """What a child is to run. ``name`` and ``port`` are those that its arm has beside the other one."""

    file: str  # of the arm
    name: str
    port: int
    cards: tuple[str, ...]
    suite: str
    settings: Mapping[str, Json]
    wait_s: float | None
    place: AbPlace | None  # None: it only builds the tensor cache, before the first pair
    owner: int  # pid

    def to_text(self) -> str:
        """Write it as an argument."""
        return json.dumps(asdict(self))


def read_order(text: str) -> CellOrder:
    """Read it back."""
    table: dict[str, Any] = json.loads(text)
    place = None if table["place"] is None else AbPlace(**table["place"])
    return CellOrder(**{**table, "cards": tuple(table["cards"]), "place": place})


def end_with_owner(owner: int) -> None:
    """Have the kernel ask us to end (SIGTERM, which stops the engine in order) when our owner ends, however it does."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != owner:  # it was gone before the kernel was asked
        os.kill(os.getpid(), signal.SIGTERM)


class CellReporter:
    """Tells the owner everything, and waits for the other run of the pair before and after it measures."""

    def begin(self, phase: str) -> None:
        """See ``Reporter``."""
        if phase == "measure":
            self._wait("to measure")
        _say("begin", phase=phase)

    def detail(self, text: str) -> None:
        """See ``Reporter``."""
        _say("detail", text=text)

    def check(self, name: str, *, ok: bool | None, detail: str = "") -> None:
        """See ``Reporter``."""
        _say("check", name=name, ok=ok, detail=detail)

    def end(self, phase: str, *, ok: bool, seconds: float) -> None:
        """See ``Reporter``."""
        _say("end", phase=phase, ok=ok, seconds=seconds)
        if phase == "measure" and ok:
            self._wait("to stop")

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """See ``Reporter``."""
        _say("lines", title=title, lines=list(lines))

    def _wait(self, what: str) -> None:
        _say("wait", what=what)
        sys.stdin.buffer.readline()  # nothing at all when the owner is gone; a signal to end has come then


def tell_result(result: Result) -> None:
    """Tell the owner how it went."""
    text = "" if result.error is None else result.error.message
    _say("over", run=result.run, exit_code=int(result.exit_code), text=text)


def tell_fault(message: str, exit_code: int) -> None:
    """Tell the owner that nothing could be begun."""
    _say("over", run="", exit_code=exit_code, text=message)


def _say(event: str, **more: Json) -> None:
    try:
        sys.stdout.write(f"{json.dumps({'event': event, **more})}\n")  # a pipe to its owner, not a person's terminal
        sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the owner is gone; the run goes on
