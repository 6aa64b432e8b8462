"""Which cards a request means, and which of the free ones it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.slots.errors import NoSuchCardError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ttstack.host.types import Card


@dataclass(frozen=True, slots=True)
class Want:
    """A request: these cards (ids that slots are keyed by), or, when there are none, any ``count``."""

    count: int
    ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Turn it into what a ticket holds."""
        return {"count": self.count, "ids": list(self.ids)}


def want(count: int, names: Sequence[str], cards: Sequence[Card]) -> Want:
    """Resolve the names that an arm may use (BDF, serial, udev's name) into slot ids, sorted.

    Raises NoSuchCardError for a name that fits no card, two names of one card, and more cards than there are.
    """
    have = ", ".join(f"{card.id} ({card.bdf})" for card in cards) or "none"
    if not names:
        if count > len(cards):
            raise NoSuchCardError(f"{count} cards were asked for, this host has {len(cards)}: {have}")
        return Want(count)
    found: dict[str, str] = {}
    for name in names:
        meant = [card for card in cards if card.goes_by(name)]
        if not meant:
            raise NoSuchCardError(f"this host has no card {name!r}; it has: {have}")
        if len(meant) > 1:  # the serial of a board with several chips
            several = " or ".join(card.bdf for card in meant)
            raise NoSuchCardError(f"card {name!r} could be {several}", hint="name the card by its BDF")
        card = meant[0]
        if card.id in found:
            raise NoSuchCardError(f"{found[card.id]!r} and {name!r} are one card, {card.bdf}")
        found[card.id] = name
    return Want(len(found), tuple(sorted(found)))


def share(mine: Want, older: Iterable[Want], free: Sequence[str]) -> tuple[str, ...]:
    """Say which of the free cards (sorted ids) this request may choose from, after all older requests.

    An older request that cannot be met yet keeps what it waits for, so that a mesh is not starved by single cards.
    The answer holds enough cards, or is empty.
    """
    left = list(free)
    for want_ in older:
        left = [card for card in left if card not in want_.ids] if want_.ids else left[want_.count :]
    if mine.ids:
        return mine.ids if set(mine.ids) <= set(left) else ()
    return tuple(left) if len(left) >= mine.count else ()
