"""What the host and its cards do while a load goes on, looked at from a thread of its own."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.machine import memory_available
from ttstack.host.telemetry import read_telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.bench.suites.session import Target


class Beside:
    """The looks so far. What could not be seen at one look is in none of the lists, so each has times of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._began = time.monotonic()
        self.seen: dict[str, list[tuple[float, float]]] = {}

    def look(self) -> None:
        """Look once: available memory (bytes), and of each card its temperature (C), clock (MHz) and power (W)."""
        try:
            self._note("memory_available_bytes", memory_available())
        except HostError:
            self._note("memory_available_bytes", None)
        for card in self._target.cards:
            told = read_telemetry(card, self._target.roots)
            self._note(f"card_{card.id}_temperature_c", told.temperature_c)
            self._note(f"card_{card.id}_clock_mhz", told.clock_mhz)
            self._note(f"card_{card.id}_power_w", told.power_w)

    def _note(self, name: str, value: float | None) -> None:
        if value is not None:
            at = round(time.monotonic() - self._began, 3)
            self.seen.setdefault(name, []).append((at, float(value)))

    def values(self) -> dict[str, tuple[float, ...]]:
        """Give each list, and beside it the times of its looks, s since the beginning: ``NAME_at_s``."""
        found: dict[str, tuple[float, ...]] = {}
        for name, rows in self.seen.items():
            found[name] = tuple(value for _, value in rows)
            found[f"{name}_at_s"] = tuple(at for at, _ in rows)
        return found


@contextmanager
def beside(target: Target, every_s: float) -> Iterator[Beside]:
    """Look at the beginning, every so many seconds, and at the end."""
    looks, over = Beside(target), threading.Event()

    def go_on() -> None:
        while not over.wait(every_s):
            looks.look()

    looks.look()
    thread = threading.Thread(target=go_on, name="beside", daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        over.set()
        thread.join()
        looks.look()
