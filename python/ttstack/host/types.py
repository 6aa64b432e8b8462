"""What is there, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel's trees are; fixture trees and the simulated host put others in their place."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


@dataclass(frozen=True, slots=True)
class Card:
    """One card. ``id`` (serial, else BDF) names its slot: the node number moves, this does not."""

    node: str  # path of the device node, e.g. /dev/tenstorrent/0
    number: int  # N of that path
    bdf: str  # e.g. 0000:01:00.0
    serial: str  # 16 hex digits, "" when the driver does not tell
    asic_id: str  # "" when the driver does not tell
    board: str  # p150a, p100a, ...

    @property
    def id(self) -> str:
        """The name that the slot is keyed by."""
        return self.serial or self.bdf


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that cannot be mistaken for a later one: pid and start time (stat field 22, in ticks)."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where ttx keeps things on this host; see docs/reference/files.md."""

    state: Path  # runs/, records.jsonl
    locks: Path  # one lock file per card
    cache: Path  # tensor and JIT caches
    roots: Roots
    simulated: bool
