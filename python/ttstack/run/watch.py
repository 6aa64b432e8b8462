"""What a supervisor watches beside the log: memory, disk, and a tensor cache that is being built."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.host import disk, machine
from ttstack.run.texts import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_GB = 1_000_000_000
_WINDOW_S = 30.0  # over which the rate of writing is taken
_LOOKS = 30  # how often a cache is looked at while it may stand still: its walk is not free


@dataclass(frozen=True, slots=True)
class Limits:
    """When an engine is stopped. The floors leave room to stop it in order; they are choices, not measurements."""

    memory_floor: int = 1 * _GB  # bytes of MemAvailable
    disk_floor: int = 2 * _GB  # bytes free beside what is being written
    disk_ahead_s: float = 30.0  # how long whatever is being written may go on, beside the stop grace
    stall_s: float = 900.0  # of a cache that is built and does not grow, as tt-inference-server waits
    every_s: float = 1.0


DEFAULT_LIMITS = Limits()


@dataclass(slots=True)
class Watch:
    """Looks now and then. ``folder``: the tensor cache; ``grace_s``: what a stop may take."""

    limits: Limits
    folder: Path
    grace_s: float
    memory: Callable[[], int | None] = machine.memory_available
    free: Callable[[Path], int | None] = disk.free_bytes
    size: Callable[[Path], int] = disk.tree_bytes
    clock: Callable[[], float] = time.monotonic
    _next: float = 0.0
    _frees: deque[tuple[float, int]] = field(default_factory=deque)
    _size: int = -1
    _grown: float = 0.0
    _next_size: float = 0.0

    def look(self, *, building: bool) -> Failure | None:
        """Say why the engine must be stopped, if it must. ``building``: its boot is writing the tensor cache now."""
        now = self.clock()
        if now < self._next:
            return None
        self._next = now + self.limits.every_s
        return self._memory() or self._disk(now) or self._stall(now, building=building)

    def _memory(self) -> Failure | None:
        left = self.memory()
        if left is None or left >= self.limits.memory_floor:
            return None
        return Failure(
            "low_memory",
            f"this host has {left / _GB:.1f} GB of memory available, under the floor of"
            f" {self.limits.memory_floor / _GB:.1f} GB",
        )

    def _disk(self, now: float) -> Failure | None:
        free = self.free(self.folder)
        if free is None:
            return None
        self._frees.append((now, free))
        while self._frees[0][0] < now - _WINDOW_S:
            self._frees.popleft()
        then, most = max(self._frees, key=lambda seen: seen[1])
        rate = (most - free) / (now - then) if now > then else 0.0
        floor = self.limits.disk_floor + rate * (self.grace_s + self.limits.disk_ahead_s)
        if free >= floor:
            return None
        return Failure(
            "low_disk",
            f"{self.folder} has {free / _GB:.1f} GB free, under the floor of {floor / _GB:.1f} GB"
            f" while {rate / 1e6:.0f} MB/s are being written",
        )

    def _stall(self, now: float, *, building: bool) -> Failure | None:
        if not building:
            self._size = -1
            return None
        if now >= self._next_size:
            self._next_size = now + self.limits.stall_s / _LOOKS
            size = self.size(self.folder)
            if size != self._size:
                self._size, self._grown = size, now
        if now < self._grown + self.limits.stall_s:
            return None
        return Failure(
            "cache_stalled",
            f"the engine builds its tensor cache, and {self.folder} has not grown for {self.limits.stall_s:g} s",
        )
