"""What gives a container cards: devices, mounts, privileges and the label of Tenstorrent's own tools."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.host.types import Card, Roots

LABEL = "org.tenstorrent.tt-model.devices"
"""Node numbers with commas between; tt-model-manager and tt-cli set it and heed it."""

_NODES = "/dev/tenstorrent"


def claims(entry: dict[str, Any], cards: Sequence[Card], roots: Roots) -> Iterator[tuple[frozenset[int] | None, str]]:
    """Yield what gives cards, with their numbers (None: all)."""
    config: dict[str, Any] = entry.get("HostConfig") or {}
    if config.get("Privileged"):
        yield None, "privileged"
    sources = [("device", device.get("PathOnHost")) for device in config.get("Devices") or ()]
    sources += [("mount", mount.get("Source")) for mount in entry.get("Mounts") or () if mount.get("Type") == "bind"]
    for kind, path in sources:
        # With rules of its own for devices, a container may open what it finds below its mount of the root.
        whole = kind == "mount" and path == "/" and bool(config.get("DeviceCgroupRules"))
        numbers = None if whole else _at(str(path or ""), cards, roots)
        if numbers is None or numbers:
            yield numbers, f"{kind} {path}"
    for request in config.get("DeviceRequests") or ():
        if any("tenstorrent" in str(name) for name in request.get("DeviceIDs") or ()):  # CDI
            yield None, f"device {', '.join(request['DeviceIDs'])}"
    label = ((entry.get("Config") or {}).get("Labels") or {}).get(LABEL)
    if label:
        words = [word.strip() for word in str(label).split(",")]
        known = all(word.isascii() and word.isdigit() for word in words)
        yield (frozenset(map(int, words)) if known else None), f"label {LABEL}={label}"


def _at(path: str, cards: Sequence[Card], roots: Roots) -> frozenset[int] | None:
    """Say which cards a path of the host leads to; None: all."""
    real = _resolve(path, roots) if path else ""
    if real in {"/dev", _NODES}:
        return None
    if real.startswith(f"{_NODES}/"):
        number = real.removeprefix(f"{_NODES}/")
        # A name in by-id that leads nowhere now may have led to any.
        return frozenset({int(number)}) if number.isascii() and number.isdigit() else None
    try:
        seen = Path(real).stat() if real else None
    except OSError:
        seen = None  # not here, or not any more: it is no node of ours
    if seen is None or not stat.S_ISCHR(seen.st_mode):
        return frozenset()
    return frozenset(card.number for card in cards if _rdev(card) == seen.st_rdev)


def _resolve(path: str, roots: Roots) -> str:
    """Follow links. The host's /dev is ``roots.dev``."""
    if path != "/dev" and not path.startswith("/dev/"):
        return os.path.realpath(path)
    top = os.path.realpath(roots.dev)
    real = os.path.realpath(top + path.removeprefix("/dev"))
    return f"/dev{real.removeprefix(top)}" if real == top or real.startswith(f"{top}/") else real


def _rdev(card: Card) -> int | None:
    try:
        seen = Path(card.node).stat()
    except OSError:
        return None
    return seen.st_rdev if stat.S_ISCHR(seen.st_mode) else None
