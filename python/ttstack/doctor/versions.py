"""Versions of tt-kmd and of firmware bundles, and the oldest that each reader of a card takes."""

from __future__ import annotations

import re

Version = tuple[int, int, int]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_LEGACY = 80  # bundles before 18.0 were numbered 80.x and are older than all others (tt-umd, compare_firmware_bundle)

FIRMWARE_OPENED: dict[str, Version] = {"blackhole": (18, 5, 0), "wormhole": (18, 3, 0)}
"""tt-umd, get_minimum_compatible_firmware_version."""
FIRMWARE_ASKED: dict[str, Version] = {"blackhole": (19, 2, 0)}
"""tt-metal, INSTALLING.md."""
DRIVER_OPENED: Version = (2, 0, 0)
"""tt-umd, KMD_MINIMUM_VERSION."""
DRIVER_ASKED: Version = (2, 5, 0)
"""tt-metal, INSTALLING.md, for Blackhole."""
DRIVER_UNPINS: Version = (2, 8, 0)
"""tt-kmd: before it, PIN_PAGES that could not tell its result left the pages pinned."""

_WORMHOLE = frozenset({"n150", "n300", "galaxy-wormhole"})


def chip(board: str) -> str:
    """Name a board's chip; "" for a board that is not known."""
    if board in _WORMHOLE:
        return "wormhole"
    return "blackhole" if re.match(r"p\d|galaxy-blackhole", board) else ""


def parse(text: str) -> Version | None:
    """Read ``19.13.1.0`` or ``2.10.1-pre`` up to the third number; None when it is no version."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def firmware(text: str) -> Version | None:
    """Read the version of a firmware bundle so that older ones are smaller."""
    version = parse(text)
    return (0, *version[1:]) if version and version[0] >= _LEGACY else version


def leaks_pins(release: str) -> bool:
    """Whether a kernel of that release leaks pinned pages: 6.11 up to 6.12.0 (bugzilla 219427, llama.cpp#9988)."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if match is None:
        return False
    version = (int(match[1]), int(match[2]), int(match[3] or 0))
    return (6, 11, 0) <= version <= (6, 12, 0)
