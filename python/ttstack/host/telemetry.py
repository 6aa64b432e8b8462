"""What cards tell of themselves while they work, from sysfs alone: no device is opened (an open changes its power)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.host.types import Card, Roots


@dataclass(frozen=True, slots=True)
class Telemetry:
    """One look at a card; None: the driver does not tell."""

    temperature_c: float | None  # of the chip
    clock_mhz: float | None  # of its Tensix cores
    power_w: float | None


def read_telemetry(card: Card, roots: Roots) -> Telemetry:
    """Look at a card: tt-kmd's ``tt_aiclk`` (MHz), and its hwmon device (tt-kmd hwmon.c) in the kernel's units.

    Those are 1/1000 degree and 1/1000000 W (kernel, hwmon/sysfs-interface.rst). A card that is being reset tells
    nothing.
    """
    entry = roots.sys / "class/tenstorrent" / f"tenstorrent!{card.number}"
    monitor = _monitor(entry / "device/hwmon")
    return Telemetry(
        temperature_c=None if monitor is None else _scaled(_sensor(monitor, "temp", "asic_temp"), 1000),
        clock_mhz=_scaled(entry / "tt_aiclk", 1),
        power_w=None if monitor is None else _scaled(_sensor(monitor, "power", "power"), 1_000_000),
    )


def _monitor(folder: Path) -> Path | None:
    try:
        return next(iter(sorted(folder.iterdir())), None)
    except OSError:
        return None


def _sensor(monitor: Path, kind: str, label: str) -> Path:
    """Find the sensor with a label; the first of its kind when none has it."""
    for file in sorted(monitor.glob(f"{kind}*_label")):
        if _told(file) == label:
            return monitor / f"{file.name.removesuffix('_label')}_input"
    return monitor / f"{kind}1_input"


def _told(file: Path) -> str:
    try:
        return read_text(file) or ""
    except HostError:
        return ""


def _scaled(file: Path, per_unit: int) -> float | None:
    try:
        return float(_told(file)) / per_unit
    except ValueError:
        return None
