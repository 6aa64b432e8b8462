"""What kind of machine this is, as far as the kernel tells (proc_cpuinfo(5), proc_meminfo(5))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.host.files import read_text
from ttstack.host.process import PROC

if TYPE_CHECKING:
    from pathlib import Path


def cpu_model(proc: Path = PROC) -> str:
    """Name the first CPU's model; "" when the kernel does not tell. Raises HostError."""
    return _field(proc / "cpuinfo", "model name")


def memory_bytes(proc: Path = PROC) -> int | None:
    """Give the size of the memory, MemTotal; None when the kernel does not tell. Raises HostError."""
    words = _field(proc / "meminfo", "MemTotal").split()  # "16331752 kB"
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def _field(file: Path, name: str) -> str:
    """Return the first line's value of that name; "" when there is none."""
    for line in (read_text(file) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
