"""What the machine is about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.host.conditions import clock_synchronised, cpu_governor, load_average

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _governors(folder: Path, *names: str) -> Path:
    for at, name in enumerate(names):
        policy = folder / "cpufreq" / f"policy{at}"
        policy.mkdir(parents=True)
        (policy / "scaling_governor").write_text(f"{name}\n")
    return folder


def test_each_governor_is_named_once(tmp_path: Path) -> None:
    assert cpu_governor(_governors(tmp_path, "powersave", "performance", "powersave")) == "performance,powersave"


def test_a_guest_has_no_governor(tmp_path: Path) -> None:
    assert cpu_governor(tmp_path) == ""


def test_the_load_is_told_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1.234, 0.0, 12.0))
    assert load_average() == (1.23, 0.0, 12.0)

    def unknown() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", unknown)
    assert load_average() == ()


def test_the_clock_is_what_the_kernel_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock_synchronised() in {True, False, None}
    for answer, told in ((0, True), (4, True), (5, False), (-1, None)):

        class _C:
            def adjtimex(self, _buffer: object, answer: int = answer) -> int:
                return answer

        monkeypatch.setattr("ctypes.CDLL", lambda _name, c=_C: c())
        assert clock_synchronised() is told
