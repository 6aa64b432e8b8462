from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.host.machine import cpu_model, memory_bytes

if TYPE_CHECKING:
    from pathlib import Path


def test_the_machine_is_what_the_kernel_tells(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A: B 9\n\nmodel name\t: another\n")
    (tmp_path / "meminfo").write_text("MemFree:  1 kB\nMemTotal:       16331752 kB\n")
    assert cpu_model(tmp_path) == "A: B 9"
    assert memory_bytes(tmp_path) == 16331752 * 1024


def test_what_the_kernel_does_not_tell_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\n")
    assert cpu_model(tmp_path) == ""
    assert memory_bytes(tmp_path) is None
