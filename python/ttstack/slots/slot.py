"""What a slot is, and how one is asked for."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.slots import legacy
from ttstack.slots.lock import guarded, write_note

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.host.types import Card
    from ttstack.slots.claim import Claim
    from ttstack.slots.key import Key


def lock_name(card_id: str) -> str:
    """Name a card's lock file: the id with all but letters, digits, dot and dash replaced."""
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in card_id) + ".lock"


def guard_path(locks: Path) -> Path:
    """Name the lock under which cards are taken and looked at; it is held for moments only."""
    return locks / "guard"


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted, and how long to wait for it. ``wait_s`` 0: not at all; None: for ever."""

    count: int
    names: tuple[str, ...]  # as an arm may name cards; empty: any
    wait_s: float | None
    legacy: Path | None = None  # where older drivers' lock directory is; None: there are no such drivers


@dataclass(slots=True)
class Slot:
    """The right to use cards, as long as one of the descriptors is open in some process."""

    cards: tuple[Card, ...]
    keys: dict[str, Key]  # by card id
    legacy: int | None
    legacy_place: Path | None
    locks: Path
    released: bool = field(default=False)

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors to pass to whoever shall hold the cards too: two for each card, and the older drivers' lock."""
        pairs = [fd for key in self.keys.values() for fd in (key.lock, key.mark)]
        return (*pairs, *(() if self.legacy is None else (self.legacy,)))

    def write(self, claim: Claim) -> None:
        """Say in every lock file who holds it."""
        for key in self.keys.values():
            write_note(key.lock, claim.to_note())

    def let_go(self) -> None:
        """Close our descriptors only: whoever got copies keeps the cards."""
        if not self.released:
            self.released = True
            for handle in self.fds:
                os.close(handle)

    def release(self, *, heirs: bool = False) -> None:
        """Give the cards back. The text inside is emptied first, unless ``heirs`` may go on under it."""
        if self.released:
            return
        for key in () if heirs else self.keys.values():
            write_note(key.lock, None)
        self.let_go()
        if self.legacy_place is not None:
            with guarded(guard_path(self.locks), time.sleep):
                legacy.sweep(self.legacy_place)
