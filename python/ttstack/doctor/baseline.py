"""What nobody accounts for on a healthy host, learned anew in each boot.

It may be taken only while nothing can have leaked: early in the boot, with nobody at a card, everything looked at, and
no pins outstanding where the kernel counts them. Later in the same boot it may only shrink: a smaller residual shows
that the part that is not lost is no larger. Else a leak that was there first would be called normal.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ttstack.doctor.types import Baseline
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory, read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.doctor.types import Scan
    from ttstack.host.memory import Memory

EARLY_S = 900.0
"""Seconds after boot in which a baseline may be taken."""
PINS_ALLOWED = 64 * 1024 * 1024
"""Bytes that other drivers may have pinned meanwhile; a leak of a card's pins is counted in GB."""


def baseline_file(state: Path) -> Path:
    """Say where the baseline is kept."""
    return state / "doctor" / "baseline.json"


def load(state: Path, boot: str) -> Baseline | None:
    """Read this boot's baseline; None when there is none, or what is there is no such thing. Raises nothing."""
    try:
        note = read_json(baseline_file(state))
    except HostError:
        return None
    residual, uptime = note.get("residual"), note.get("uptime_s")
    if note.get("boot") != boot or type(residual) is not int or not isinstance(uptime, int | float) or residual < 0:
        return None
    return Baseline(boot, residual, float(uptime), str(note.get("taken", "")))


def renew(known: Baseline | None, memory: Memory, scan: Scan, boot: str) -> Baseline | None:
    """Give the baseline that this look makes of the one known; the same one when it teaches nothing."""
    if not memory.known or memory.uptime_s is None or scan.holders or scan.blind:
        return known
    residual = max(0, memory.residual)
    now = Baseline(boot, residual, memory.uptime_s, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    if known is not None:
        return now if residual < known.residual else known
    early = memory.uptime_s <= EARLY_S
    pinned = memory.pins is not None and memory.pins.outstanding > PINS_ALLOWED
    return now if early and not pinned else None


def keep(state: Path, baseline: Baseline) -> str:
    """Write it down, by rename; say why not when it cannot be: the verdict of today does not hang on it."""
    path = baseline_file(state)
    try:
        make_directory(path.parent)
        write_json(
            path,
            {
                "boot": baseline.boot,
                "residual": baseline.residual,
                "uptime_s": baseline.uptime_s,
                "taken": baseline.taken,
            },
        )
    except HostError as error:
        return error.message
    return ""
