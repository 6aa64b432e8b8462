"""Whoever takes a card says so in its lock file while it looks who has the card: that may take seconds.

The look happens with the card's keys in hand and without the guard, so that a slow engine of containers holds up nobody
who wants another card. Until it is over others find the card taken, by somebody who may give it back at once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.slots.claim import NOBODY_KNOWN, from_note
from ttstack.slots.key import is_held
from ttstack.slots.lock import read_note, write_note

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ttstack.host.types import Card
    from ttstack.slots.key import Key

_LOOKING = "looking"


def announce(path: Path, key: Key) -> Callable[[], None]:
    """Say that we look; return what puts the text back that was there, e.g. of an engine whose supervisor died."""
    before = read_note(path)
    write_note(key.lock, {_LOOKING: os.getpid()})
    return lambda: write_note(key.lock, None if _LOOKING in before else before or None)


def is_looked_at(path: Path, card: Card) -> bool:
    """Say whether a card is taken by somebody who is still looking. Under the guard. Raises SlotsError."""
    return _LOOKING in read_note(path) and is_held(path, card)


def who(path: Path) -> str:
    """Say who has a slot that is taken, as far as the text in its lock file tells."""
    note = read_note(path)
    if _LOOKING in note:
        return "another ttx that looks whether it is free"
    return str(from_note(note) or NOBODY_KNOWN)
