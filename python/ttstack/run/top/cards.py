"""Cards as they work: what sysfs tells, whether their firmware lives, and who has their slots."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ttstack.host.cards import inventory
from ttstack.host.telemetry import read_telemetry
from ttstack.run.top.types import CardNow
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ttstack.host.types import Card, Places
    from ttstack.slots.view import SlotView

STILL_S = 0.6  # six periods of the firmware's telemetry, as ``ttstack.host.cards.beating`` waits

Slots = dict[tuple[bool, str], "SlotView"]
"""Whether it is simulated, and its id -> its slot."""


class Heartbeats:
    """Says of each card whether its counter moves, from the looks before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved: dict[str, tuple[int, float, bool | None]] = {}  # counter, since when, what was said last

    def note(self, card: Card) -> bool | None:
        """Note a look at a card; None: not told, or not known yet."""
        if card.heartbeat is None:
            self._moved.pop(card.id, None)
            return None
        now = self._clock()
        counter, since, said = self._moved.get(card.id, (card.heartbeat, now, None))
        if counter != card.heartbeat:
            since, said = now, True
        elif now - since >= STILL_S:
            said = False
        self._moved[card.id] = (card.heartbeat, since, said)
        return said


def look_at_cards(places: Sequence[Places], beats: Heartbeats) -> tuple[CardNow, ...]:
    """Look at the cards of these hosts, without their slots. Raises HostError.

    A simulated card has no firmware, and its counter is a file that stands still.
    """
    return tuple(
        CardNow(
            card,
            each.simulated,
            read_telemetry(card, each.roots),
            None if each.simulated else beats.note(card),
            None,
        )
        for each in places
        for card in inventory(each.roots)
    )


def look_at_slots(places: Sequence[Places]) -> Slots:
    """Look who has the cards of these hosts, which asks every process and container. Raises HostError, SlotsError."""
    return {(each.simulated, view.card.id): view for each in places for view in look(each)}
