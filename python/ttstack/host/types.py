"""What is there, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# What udev calls a node since tt-kmd 2.6.0, e.g. blackhole-0123456789abcdef.
_UDEV = re.compile(r"[a-z]+-((?:0x)?[0-9a-fA-F]+)")


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel's trees are; fixture trees and the simulated host put others in their place."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


@dataclass(frozen=True, slots=True)
class Card:
    """One card: one chip with a node. ``id`` names its slot: the node number moves, this does not.

    What has a default is not known of a card that nobody looked at (an arm rendered without its host).
    """

    node: str  # path of the device node, e.g. /dev/tenstorrent/0
    number: int  # N of that path
    bdf: str  # e.g. 0000:01:00.0
    serial: str  # of the board, 16 hex digits, "" when the driver does not tell
    asic_id: str  # of the chip, "" when the driver does not tell
    board: str  # p150a, p100a, ...
    shared_serial: bool = False  # the board has other chips, which tell the same serial
    firmware: str = ""  # version of the firmware bundle, e.g. 19.13.1.0; "" when the driver does not tell
    driver: str = ""  # version of tt-kmd, e.g. 2.10.1; "" when it does not tell
    numa_node: int | None = None  # None: the host has no such thing, or does not tell
    iommu: str = ""  # iommu_group/type, e.g. DMA-FQ or identity; "" without a group
    hugepages_needed: bool = False  # whether the engine needs a 1 GiB hugepage for this card
    heartbeat: int | None = None  # the firmware's counter when it was looked at; None when the driver does not tell

    @property
    def id(self) -> str:
        """The name that the slot is keyed by: the serial, where it names one chip only, else the BDF."""
        return self.bdf if self.shared_serial or not self.serial else self.serial

    def goes_by(self, name: str) -> bool:
        """Whether a name that arms and people use means this card.

        The BDF (with or without its domain 0000), the serial, the asic id or udev's name; case does not count.
        """
        low = name.lower()
        own = {self.bdf.lower(), self.bdf.lower().removeprefix("0000:"), self.serial.lower(), _plain(self.asic_id)}
        return bool({low, asic_in(low) or _plain(low)} & (own - {""}))


def asic_in(name: str) -> str:
    """Return the asic id in udev's name of a card, in small letters without ``0x``; "" for any other name."""
    match = _UDEV.fullmatch(name)
    return _plain(match[1]) if match else ""


def _plain(asic_id: str) -> str:
    return asic_id.lower().removeprefix("0x")


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
