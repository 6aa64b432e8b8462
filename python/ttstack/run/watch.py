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
_AHEAD = 4  # looks that there are at least between now and the floor, at the rate that was seen
_LEAST_S = 0.05  # a look is cheap, and no disk is so fast that this were too slow for these floors
_WRONG = 1.1  # a cache that is larger than it was expected to be by this: the expectation says nothing any more


@dataclass(frozen=True, slots=True)
class Limits:
    """When an engine is stopped, or not started. The floors leave room to stop it in order; they are choices.

    ``every_s`` is the longest time between two looks; it gets shorter the faster a floor comes near.
    """

    memory_floor: int = 1 * _GB  # bytes of MemAvailable
    memory_start: int = 2 * _GB  # of it, for a start
    disk_floor: int = 2 * _GB  # bytes free, beside what a build may write until a stop has its effect
    disk_ahead_s: float = 30.0  # how long whatever is being written may go on, beside the stop grace
    stall_s: float = 900.0  # of a cache that is built and does not grow, as tt-inference-server waits
    every_s: float = 1.0


DEFAULT_LIMITS = Limits()

_MB = 1_000_000
SIMULATED_LIMITS = Limits(memory_floor=64 * _MB, memory_start=128 * _MB, disk_floor=8 * _MB)
"""The simulated engine takes some 30 MB of memory and writes a few MB."""


@dataclass(slots=True)
class _Gauge:
    """Something that runs out: how fast, and when a floor is reached."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, left: int) -> None:
        """Take in what is left, bytes."""
        self.seen.append((now, left))
        while self.seen[0][0] < now - _WINDOW_S:
            self.seen.popleft()

    @property
    def rate(self) -> float:
        """Bytes a second since there was most, within the window."""
        now, left = self.seen[-1]
        then, most = max(self.seen, key=lambda seen: seen[1])
        return (most - left) / (now - then) if now > then else 0.0

    def time_to(self, floor: float) -> float:
        """Seconds until the floor at the higher of both rates, that of the window and that since the last look."""
        now, left = self.seen[-1]
        rate = self.rate
        if len(self.seen) > 1 and now > self.seen[-2][0]:
            rate = max(rate, (self.seen[-2][1] - left) / (now - self.seen[-2][0]))
        return (left - floor) / rate if rate > 0 else float("inf")


@dataclass(slots=True)
class Watch:
    """Looks now and then. ``folder``: the tensor cache; ``grace_s``: what a stop may take.

    ``expected``: bytes that the whole cache will have, as the reservation took it; 0 when nobody knows.
    """

    limits: Limits
    folder: Path
    grace_s: float
    expected: int = 0
    memory: Callable[[], int | None] = machine.memory_available
    free: Callable[[Path], int | None] = disk.free_bytes
    size: Callable[[Path], int] = disk.tree_bytes
    clock: Callable[[], float] = time.monotonic
    _next: float = 0.0
    _memory_left: _Gauge = field(default_factory=_Gauge)
    _disk_left: _Gauge = field(default_factory=_Gauge)
    _size: int = -1
    _grown: float = 0.0
    _next_size: float = 0.0

    def look(self, *, building: bool, converting: bool = False) -> Failure | None:
        """Say why the engine must be stopped, if it must.

        ``building``: this boot makes the tensor cache. ``converting``: it is at it just now, as its log says.
        """
        now = self.clock()
        if now < self._next:
            return None
        self._next = now + self.limits.every_s
        return self._memory(now) or self._disk(now, building=building) or self._stall(now, converting=converting)

    def _hurry(self, now: float, seconds: float) -> None:
        self._next = min(self._next, now + max(_LEAST_S, seconds / _AHEAD))

    def _memory(self, now: float) -> Failure | None:
        left, floor = self.memory(), self.limits.memory_floor
        if left is None:
            return None
        self._memory_left.note(now, left)
        self._hurry(now, self._memory_left.time_to(floor))
        if left >= floor:
            return None
        return Failure(
            "low_memory",
            f"this host has {left / _GB:.1f} GB of memory available, under the floor of {floor / _GB:.1f} GB",
        )

    def _disk(self, now: float, *, building: bool) -> Failure | None:
        free = self.free(self.folder)
        if free is None:
            return None
        self._disk_left.note(now, free)
        rate = self._disk_left.rate
        floor = self.limits.disk_floor + (self._ahead(free, rate) if building else 0)
        self._hurry(now, self._disk_left.time_to(floor))
        if free >= floor:
            return None
        return Failure(
            "low_disk",
            f"{self.folder} has {free / _GB:.1f} GB free, under the floor of {floor / _GB:.1f} GB"
            f" while {rate / 1e6:.0f} MB/s are being written",
        )

    def _ahead(self, free: int, rate: float) -> float:
        """Say how much may be written until a stop has its effect: at this rate, but no more than is still to come."""
        ahead = rate * (self.grace_s + self.limits.disk_ahead_s)
        if not self.expected or free >= self.limits.disk_floor + ahead:
            return ahead
        there = self.size(self.folder)
        return ahead if there > self.expected * _WRONG else min(ahead, max(0, self.expected - there))

    def _stall(self, now: float, *, converting: bool) -> Failure | None:
        if not converting:
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
