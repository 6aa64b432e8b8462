"""What the doctor finds, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warn", "bad"]
"""ok: fine; note: worth knowing; warn: look at it; bad: mend it, `ttx doctor` exits with 1."""
LEVELS: tuple[Level, ...] = ("ok", "note", "warn", "bad")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``code`` is stable; its level and its meaning are in ``doctor.codes``."""

    code: str
    level: Level
    text: str  # one sentence
    hint: str = ""  # what to do; "" when there is nothing to do
    subject: str = ""  # a card's id, a folder, an engine, ...

    @property
    def section(self) -> str:
        """What it is about: the part of the code before the dot."""
        return self.code.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Scan:
    """Who may have memory pinned for a card now."""

    holders: tuple[str, ...] = ()  # for people, one each
    blind: tuple[str, ...] = ()  # what could not be looked at, a sentence each
    cards: bool = True  # whether this host has a card or its driver at all


@dataclass(frozen=True, slots=True)
class Baseline:
    """What nobody accounted for when nothing had leaked yet."""

    boot: str  # random(4)'s boot_id
    residual: int  # bytes
    uptime_s: float  # when it was taken
    taken: str  # the same, UTC


@dataclass(frozen=True, slots=True)
class Ailment:
    """What a code means, and the way out."""

    level: Level
    meaning: str
    way_out: str = ""
