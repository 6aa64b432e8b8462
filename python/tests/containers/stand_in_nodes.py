"""Device nodes that stand in for cards.

A number that no driver has cannot be opened (ENXIO), so each node is that of a macvtap interface, where the kernel
makes them: a character device with a number of its own, which any number of processes may open without a capability,
and which nothing else on the host has open. Elsewhere they are /dev/full and /dev/random, which are always there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Numbers = tuple[tuple[int, int], ...]
"""Major and minor number of each node."""

ALWAYS_THERE: Numbers = ((1, 7), (1, 8))


@contextmanager
def stand_in_nodes(count: int) -> Iterator[Numbers]:
    """Have the kernel make devices, as many as ``count`` where it can; give their numbers."""
    bridge, taps = f"ttxb{os.getpid()}", [f"ttx{at}t{os.getpid()}" for at in range(count)]
    made = _ip("link", "add", bridge, "type", "bridge")
    try:
        numbers = [_tap(tap, bridge) for tap in taps] if made else []
        yield tuple(pair for pair in numbers if pair is not None) if all(numbers) and made else ALWAYS_THERE[:count]
    finally:
        for name in [*taps, bridge]:
            _ip("link", "delete", name)


def _tap(name: str, bridge: str) -> tuple[int, int] | None:
    if not _ip("link", "add", "link", bridge, "name", name, "type", "macvtap"):
        return None
    (told,) = [file.read_text() for file in Path(f"/sys/class/net/{name}").glob("tap*/dev")]
    major, _, minor = told.strip().partition(":")
    return int(major), int(minor)


def _ip(*words: str) -> bool:
    program = shutil.which("ip", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    return program is not None and subprocess.run([program, *words], capture_output=True, check=False).returncode == 0
