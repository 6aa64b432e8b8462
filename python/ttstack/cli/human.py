"""Sizes and times for people."""

from __future__ import annotations

_STEP = 1000  # powers of ten, as disks and cards are sold
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size(count: float) -> str:
    """Write a number of bytes."""
    unit = "B"
    for bigger in ("kB", "MB", "GB", "TB"):
        if count < _STEP:
            break
        count, unit = count / _STEP, bigger
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def ago(seconds: float) -> str:
    """Write how long ago something was. What lies ahead was a moment ago: clocks are set."""
    if seconds < _MINUTE:
        return f"{max(0, seconds):.0f} s ago"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE:.0f} min ago"
    return f"{seconds // _HOUR:.0f} h ago" if seconds < _DAY else f"{seconds // _DAY:.0f} d ago"
