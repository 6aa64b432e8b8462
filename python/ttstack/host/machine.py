"""What kind of machine this is, as far as the kernel tells (proc_cpuinfo(5), proc_meminfo(5))."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.host.files import read_text
from ttstack.host.process import PROC

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def cpu_model(proc: Path = PROC) -> str:
    """Name the first CPU's model; "" when the kernel does not tell. Raises HostError."""
    return _field(proc / "cpuinfo", "model name")


def memory_bytes(proc: Path = PROC) -> int | None:
    """Give the size of the memory, MemTotal; None when the kernel does not tell. Raises HostError."""
    return _kilobytes(proc, "MemTotal")


def memory_available(proc: Path = PROC) -> int | None:
    """Give the kernel's guess of what new programs may use without swapping, MemAvailable; None when it does not tell.

    It does not know pinned pages, so it can be too high (earlyoom#320). Raises HostError.
    """
    return _kilobytes(proc, "MemAvailable")


def resident_bytes(pids: Iterable[int], proc: Path = PROC) -> int:
    """Add up what these processes have in memory (proc_pid_statm(5)); pages that they share count for each."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for pid in pids:
        words = (read_text(proc / str(pid) / "statm") or "").split()
        total += int(words[1]) * page if len(words) > 1 else 0
    return total


def _kilobytes(proc: Path, name: str) -> int | None:
    words = _field(proc / "meminfo", name).split()  # "16331752 kB"
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def _field(file: Path, name: str) -> str:
    """Return the first line's value of that name; "" when there is none."""
    for line in (read_text(file) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
