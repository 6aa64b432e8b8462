"""Look at slots without taking them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ttstack.host.cards import inventory
from ttstack.host.holders import Holders, holders
from ttstack.slots.claim import NOBODY_KNOWN, from_note
from ttstack.slots.key import is_held
from ttstack.slots.lock import guarded, lock_folder, read_note
from ttstack.slots.looking import who
from ttstack.slots.slot import guard_path, lock_name

if TYPE_CHECKING:
    from ttstack.host.types import Card, Places
    from ttstack.slots.claim import Claim

SlotState = Literal["free", "held", "dirty", "open", "unknown"]


@dataclass(frozen=True, slots=True)
class SlotView:
    """One card now. ``open``: no lock, yet a process or a container has it; ``unknown``: it could not be told.

    A card that is ``open`` has a claim when a container of that very run has it: a container keeps no lock, so that of
    its supervisor went with it.
    """

    card: Card
    state: SlotState
    claim: Claim | None
    holders: Holders
    owner_lives: bool  # whether the process that wrote the claim lives
    nameless: str = NOBODY_KNOWN  # who holds it, when there is no claim

    @property
    def text(self) -> str:
        """Who has it, for people."""
        if self.state == "free":
            return ""
        if self.claim is not None:
            having = "" if self.state in {"held", "dirty"} else f"; {self.holders} has it"
            return f"{self.claim}{'' if self.owner_lives else self.claim.gone}{having}"
        return self.nameless if self.state == "held" else str(self.holders)


def look(places: Places) -> tuple[SlotView, ...]:
    """Look at every card's slot. Raises HostError and SlotsError."""
    cards = inventory(places.roots)
    if not cards:
        return ()
    lock_folder(places.locks)
    locked: dict[str, bool] = {}
    # Under the guard nobody takes a card, so that our probing cannot make another's attempt fail.
    with guarded(guard_path(places.locks), time.sleep, shared=True):
        for card in cards:
            locked[card.id] = is_held(places.locks / lock_name(card.id), card)
    seen = holders(cards, places.roots, simulated=places.simulated)
    return tuple(_view(places, card, seen[card.id], locked=locked[card.id]) for card in cards)


def _view(places: Places, card: Card, found: Holders, *, locked: bool) -> SlotView:
    path = places.locks / lock_name(card.id)
    claim = from_note(read_note(path))
    if locked:
        dirty = claim is not None and claim.state == "dirty"
        lives = claim is not None and claim.owner_lives()
        return SlotView(card, "dirty" if dirty else "held", claim, found, lives, who(path))
    if claim is not None and claim.run not in {container.run for container in found.containers}:
        claim = None  # a text that its owner left; it says nothing about who has the card now
    state: SlotState = "free" if found.free else "open" if found.held else "unknown"
    return SlotView(card, state, claim, found, owner_lives=False)
