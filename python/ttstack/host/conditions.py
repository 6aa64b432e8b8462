"""What the machine is about just now, as far as it changes what a measurement finds."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ttstack.host.errors import HostError
from ttstack.host.files import read_text

CPUS = Path("/sys/devices/system/cpu")
_TIMEX_BYTES = 256  # struct timex takes 208 on 64-bit machines
_TIME_ERROR = 5


def load_average() -> tuple[float, ...]:
    """Give the load average over 1, 5 and 15 minutes; empty when the kernel does not tell."""
    try:
        return tuple(round(load, 2) for load in os.getloadavg())
    except OSError:
        return ()


def cpu_governor(cpus: Path = CPUS) -> str:
    """Name the scaling governor of the CPUs (kernel, cpufreq), each once; "" when there is none, as in most guests."""
    found = set()
    with suppress(HostError):
        for file in cpus.glob("cpufreq/policy*/scaling_governor"):
            found.add(read_text(file) or "")
    return ",".join(sorted(found - {""}))


def clock_synchronised() -> bool | None:
    """Ask the kernel whether its clock is synchronised (adjtimex(2), which also tells who may not set it).

    None when it cannot be asked.
    """
    import ctypes  # noqa: PLC0415 - asked once in a run

    try:
        answer = int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))  # modes 0: nothing is set
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else answer != _TIME_ERROR
