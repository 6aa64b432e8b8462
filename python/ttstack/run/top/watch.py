"""All that is looked at, side by side: each in a thread of its own, so that what hangs is seen to hang alone."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from ttstack.host import machine
from ttstack.host.errors import HostError
from ttstack.run.top.asking import Asker
from ttstack.run.top.cards import Heartbeats, look_at_cards, look_at_slots
from ttstack.run.top.repeat import Repeat
from ttstack.run.top.runs import Runs, again, age_s, memory_bytes, telling_line
from ttstack.run.top.types import Metrics, Overview, RunNow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from ttstack.host.types import Places
    from ttstack.run.top.cards import Slots
    from ttstack.run.top.runs import Found

THOROUGH_S = 5.0  # between two looks at all processes and containers
_REST = 50.0
_LATE_S = 1.0  # a server that has not answered for this long, or for a period that is longer, does not answer
_LINES = 1000  # of a log's end; what it is that is read is bounded in bytes, too
_EAGER = 3  # quick looks after which a new run has a state


class Watch:
    """Looks at the host every ``every_s`` seconds, from ``with`` to its end. ``overview`` never waits."""

    def __init__(self, places: Callable[[], Sequence[Places]], state: Path, every_s: float) -> None:
        """``places`` says which hosts there are, the simulated one among them; ``state`` is where their runs are."""
        self._every_s = every_s
        self._runs = Runs(state)
        self._askers: dict[str, Repeat[Metrics]] = {}
        self._changing = threading.Lock()  # of the askers
        self._over = False
        self._known: dict[str, Found] = {}
        self._lines: dict[str, str] = {}
        self._mark: object = None
        self._eager = 0
        self._phases: dict[str, str] | None = None
        self._quick_saw = False
        beats = Heartbeats()
        self._cards = Repeat("cards", lambda: look_at_cards(places(), beats), every_s)
        self._slots: Repeat[Slots] = Repeat(
            "slots", lambda: look_at_slots(places()), max(THOROUGH_S, every_s), rest=_REST
        )
        self._quick = Repeat("states", self._look_quickly, every_s)
        self._found = Repeat("runs", self._runs.look, max(THOROUGH_S, every_s), rest=_REST, then=self._show_first)
        self._parts: tuple[Repeat[Any], ...] = (self._cards, self._slots, self._found, self._quick)

    def __enter__(self) -> Self:
        for part in self._parts:
            part.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self._parts:
            part.stop()
        with self._changing:
            self._over = True
            for asker in self._askers.values():
                asker.stop()

    def overview(self) -> Overview:
        """Say what is known now. Raises what a look raised that is a fault of ours."""
        slots = self._slots.value or {}
        cards = tuple(replace(card, slot=slots.get((card.simulated, card.card.id))) for card in self._cards.value or ())
        rows = tuple(replace(row, metrics=self._metrics(row)) for row in self._quick.value or ())
        memory: tuple[int | None, int | None] = (None, None)
        with suppress(HostError):
            memory = (machine.memory_available(), machine.memory_bytes())
        return Overview(time.time(), cards, rows, *memory, self._troubles())

    def settled(self) -> bool:
        """Whether a first overview shows all that it ever will: rates, for which each server is asked twice."""
        if not (self._cards.looks and self._slots.looks and self._found.looks and self._quick_saw):
            return False
        told = [card for card in self._cards.value or () if card.card.heartbeat is not None and not card.simulated]
        if told and self._cards.looks <= 1:
            return False
        return all(self._has_told(asker) for asker in self._askers.values())

    def _show_first(self) -> None:
        if not self._quick_saw:
            self._quick.kick()

    def _has_told(self, asker: Repeat[Metrics]) -> bool:
        value = asker.value
        silent = asker.late_s > max(_LATE_S, self._every_s)
        return silent or asker.looks > 1 or (value is not None and value.asking != "answered")

    def _look_quickly(self) -> tuple[RunNow, ...]:
        """Look at the runs that are known, and see to it that those that serve are asked."""
        saw, looked = self._found.looks > 0, self._found.value
        known = [now for each in (looked.found if looked else ()) if (now := again(each)) is not None]
        self._known = {each.live.state.run: each for each in known}
        with self._changing:
            self._see_to_askers(known)
        self._look_thoroughly_when_needed(known)
        rows = tuple(
            RunNow(
                each.live,
                age_s(each.live),
                memory_bytes(each.processes),
                self._line_of(each),
                Metrics("foreign", detail=each.foreign) if each.foreign else Metrics("not_asked"),
            )
            for each in known
        )
        self._quick_saw = saw
        return rows

    def _line_of(self, found: Found) -> str:
        """Give the last line of a run's log that tells something, which may be one that was seen before."""
        run = found.live.state.run
        line = telling_line(found.live.folder.tail(_LINES))
        if line is not None:
            self._lines[run] = line
        return self._lines.get(run, "")

    def _see_to_askers(self, known: Sequence[Found]) -> None:
        serving = {each.live.state.run: each.live.state.url for each in known if each.serves and not self._over}
        for run in self._askers.keys() - serving.keys():
            self._askers[run].stop()
        kept = {run: asker for run, asker in self._askers.items() if run in serving}
        for run in serving.keys() - kept.keys():
            asker = Asker(serving[run], lambda run=run: self._serves(run))  # type: ignore[misc]
            kept[run] = Repeat(f"metrics of {run}", asker.look, self._every_s).start()
        self._askers = kept  # as a whole: others read it meanwhile

    def _serves(self, run: str) -> bool:
        found = self._known.get(run)
        return found is not None and found.serves

    def _look_thoroughly_when_needed(self, known: Sequence[Found]) -> None:
        """Have all looked at anew when runs come, or change their phase, and slots with them."""
        mark = self._runs.mark()
        phases: dict[str, str] = {each.live.state.run: each.live.status for each in known}
        if self._phases is not None:
            self._eager = _EAGER if mark != self._mark else max(0, self._eager - 1)
            if self._eager or phases != self._phases:
                self._found.kick()
                self._slots.kick()
        self._mark, self._phases = mark, phases

    def _metrics(self, row: RunNow) -> Metrics:
        asker = self._askers.get(row.live.state.run)
        if asker is None:
            return row.metrics
        if asker.late_s > max(_LATE_S, self._every_s):
            return Metrics("no_answer", detail=f"it has not answered for {asker.late_s:.0f} s")
        return asker.value or Metrics("first")

    def _troubles(self) -> tuple[str, ...]:
        looked = self._found.value
        found = [part.trouble for part in self._parts] + list(looked.troubles if looked else ())
        for part, what in ((self._slots, "at who has the cards"), (self._found, "for runs"), (self._cards, "at cards")):
            if part.late_s > THOROUGH_S:
                found.append(f"looking {what} has taken {part.late_s:.0f} s so far")
        return tuple(dict.fromkeys(filter(None, found)))
