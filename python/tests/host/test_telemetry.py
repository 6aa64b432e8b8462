from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.host.cards import inventory
from ttstack.host.telemetry import Telemetry, read_telemetry
from ttstack.sim.host import make_host

if TYPE_CHECKING:
    from pathlib import Path


def test_sensors_are_read_in_the_kernels_units(tmp_path: Path) -> None:
    roots = make_host(tmp_path, 1)
    (card,) = inventory(roots)
    monitor = roots.sys / "class/tenstorrent/tenstorrent!0/device/hwmon/hwmon7"
    monitor.mkdir(parents=True)
    told = {
        "name": "blackhole",
        "temp1_label": "vreg_temp",
        "temp1_input": "99000",
        "temp2_label": "asic_temp",
        "temp2_input": "51500",
        "power1_label": "power",
        "power1_input": "78000000",
    }
    for name, text in told.items():
        (monitor / name).write_text(f"{text}\n")
    assert read_telemetry(card, roots) == Telemetry(temperature_c=51.5, clock_mhz=800.0, power_w=78.0)
    (monitor / "temp2_label").unlink()
    assert read_telemetry(card, roots).temperature_c == 99.0, "the first one when none is called asic_temp"


def test_what_is_not_told_is_none(tmp_path: Path) -> None:
    roots = make_host(tmp_path, 1)
    (card,) = inventory(roots)
    assert read_telemetry(card, roots) == Telemetry(None, 800.0, None)
    (roots.sys / "class/tenstorrent/tenstorrent!0/tt_aiclk").write_text("resetting\n")
    assert read_telemetry(card, roots) == Telemetry(None, None, None)
    assert read_telemetry(replace(card, number=9), roots) == Telemetry(None, None, None)
