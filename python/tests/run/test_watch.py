"""When a supervisor stops an engine though its log is quiet."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.cache.survey import survey
from ttstack.host.disk import free_bytes, tree_bytes
from ttstack.host.machine import memory_available, resident_bytes
from ttstack.run.state import run_folder
from ttstack.run.watch import Limits, Watch

if TYPE_CHECKING:
    from conftest import World

LIMITS = Limits(memory_floor=100, disk_floor=1000, disk_ahead_s=20, stall_s=60, every_s=1)


class Clock:
    """A host as a test wants it."""

    def __init__(self) -> None:
        self.now, self.memory, self.free, self.size, self.sizes = 1000.0, 10_000, 10_000_000, 0, 0

    def watch(self) -> Watch:
        return Watch(
            LIMITS,
            Path("/cache"),
            10.0,
            memory=lambda: self.memory,
            free=lambda _: self.free,
            size=self._size,
            clock=lambda: self.now,
        )

    def _size(self, _: Path) -> int:
        self.sizes += 1
        return self.size


def test_memory_under_the_floor_stops() -> None:
    host = Clock()
    watch = host.watch()
    host.memory = 100
    assert watch.look(building=False) is None
    host.now += 1
    host.memory = 99
    found = watch.look(building=False)
    assert found is not None
    assert found.reason == "low_memory"


def test_it_looks_only_now_and_then() -> None:
    host = Clock()
    watch = host.watch()
    assert watch.look(building=False) is None
    host.memory = 0
    host.now += 0.9
    assert watch.look(building=False) is None
    host.now += 0.1
    assert watch.look(building=False) is not None


def test_the_floor_of_the_disk_is_higher_the_faster_it_is_written() -> None:
    slow, fast = Clock(), Clock()
    for host, rate, stopped in ((slow, 10, False), (fast, 1000, True)):
        watch = host.watch()
        host.free = 30_000 + 5 * rate
        found = None
        for _ in range(6):
            found = found or watch.look(building=True)
            host.now += 1
            host.free -= rate
        assert (found is not None) == stopped, rate
        assert found is None or found.reason == "low_disk"
    served = Clock()
    watch = served.watch()
    served.free = 35_000
    for _ in range(6):
        assert watch.look(building=False) is None  # whoever writes so fast, it is not this engine's cache
        served.now += 1
        served.free -= 1000
    quiet = Clock()
    watch = quiet.watch()
    quiet.free = 1000
    assert watch.look(building=False) is None
    quiet.free = 999
    quiet.now += 1
    assert watch.look(building=False) is not None


def test_a_rate_is_forgotten_after_a_while() -> None:
    host = Clock()
    watch = host.watch()
    host.free = 1_000_000
    assert watch.look(building=False) is None
    host.now, host.free = host.now + 31, 2000
    assert watch.look(building=False) is None


def test_a_cache_that_stands_still_stops_only_while_it_is_built() -> None:
    host = Clock()
    watch = host.watch()
    reasons = []
    for second in range(200):
        host.now += 1
        if second < 100:
            host.size += 1
        found = watch.look(building=True, converting=second >= 20)
        reasons.append(found.reason if found else "")
    assert "cache_stalled" in reasons
    assert reasons.index("cache_stalled") in range(158, 165)
    assert host.sizes < 120  # it is not walked each second
    idle = Clock()
    quiet = idle.watch()
    for _ in range(200):
        idle.now += 1
        assert quiet.look(building=True) is None
    assert idle.sizes == 0


def test_what_cannot_be_learned_stops_nothing() -> None:
    host = Clock()
    watch = host.watch()
    watch.memory, watch.free = lambda: None, lambda _: None
    assert watch.look(building=False) is None


def test_the_hosts_own_numbers(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"12345")
    (tmp_path / "a" / "g").write_bytes(b"123")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert tree_bytes(tmp_path / "a") == 8
    assert tree_bytes(tmp_path / "none") == 0
    there = free_bytes(tmp_path / "not" / "yet")
    assert there is not None
    assert there > 0
    proc = tmp_path / "proc"
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "statm").write_text("100 25 3 1 0 1 0\n")
    (proc / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:  3 kB\n")
    assert memory_available(proc) == 3 * 1024
    assert resident_bytes([7, 8], proc) % 25 == 0
    assert resident_bytes([8], proc) == 0


def test_the_floor_is_no_higher_than_what_the_build_may_still_write() -> None:
    host = Clock()
    watch = host.watch()
    watch.expected = 10_000
    for written in range(0, 10_001, 1000):
        host.size, host.free = written, 11_100 - written
        assert watch.look(building=True) is None, written
        host.now += 1
    host.size, host.free = 10_900, 2_000  # somewhat more than was expected
    assert watch.look(building=True) is None
    host.now += 1
    host.size, host.free = 11_001, 1_900  # so much more that nobody knows what is still to come
    found = watch.look(building=True)
    assert found is not None
    assert found.reason == "low_disk"


def test_it_looks_the_more_often_the_nearer_a_floor_comes() -> None:
    host = Clock()
    watch = host.watch()
    watch.expected = 1_000_000
    host.free, host.size = 200_000, 990_000
    times = []
    for _ in range(4000):
        before = watch._next
        found = watch.look(building=True)
        if watch._next != before:
            times.append(host.now)
        if found:
            break
        host.now += 0.01
        host.free -= 100  # 10,000 a second
    assert found is not None
    assert found.reason == "low_disk"
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps[0] == pytest.approx(1, abs=0.03)
    assert min(gaps) < 0.1
    assert gaps == sorted(gaps, reverse=True) or min(gaps) == gaps[-1]
    # The floor is 1000 and what is still to come; at no look was more than a small part of the way to it left out.
    assert host.free > 1000 + 9_000


def test_memory_that_goes_fast_is_seen_before_it_is_gone() -> None:
    host = Clock()
    watch = host.watch()
    found = None
    while found is None:
        found = watch.look(building=False)
        host.now += 0.01
        host.memory -= 15  # a seventh of the floor in a hundredth of a second
        assert host.memory > 0
    assert found.reason == "low_memory"


WRITES = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('Opening user mode device driver', flush=True)
print('Generating cache for layers.0.w1', flush=True)
folder = os.environ['TT_CACHE_PATH']
os.makedirs(folder, exist_ok=True)
with open(folder + '/w1', 'wb') as file:
    for _ in range(WRITTEN):
        file.write(os.urandom(1 << 18))
        file.flush()
        time.sleep(0.02)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("limits", "written", "reason"),
    [
        (Limits(memory_floor=1 << 60, memory_start=0), 0, "low_memory"),
        (Limits(disk_floor=0, disk_ahead_s=1e12, every_s=0.02), 40, "low_disk"),
        (Limits(disk_floor=0, memory_floor=0, memory_start=0, stall_s=0.3, every_s=0.02), 0, "cache_stalled"),
    ],
)
def test_an_engine_is_stopped_with_its_reason_in_the_record(
    world: World, limits: Limits, written: int, reason: str
) -> None:
    program = WRITES.replace("WRITTEN", str(written))
    outcome = world.execute(world.arm(), engine_command=(sys.executable, "-c", program), limits=limits)
    assert outcome.error is not None
    assert (outcome.exit_code, outcome.error.reason) == (1, reason), outcome.error
    closed = world.record(outcome.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", reason)
    assert closed.text
    assert run_folder(world.places.state, outcome.run).over()
    assert world.clean()
    (cache,) = (entry for entry in survey(world.places.cache) if entry.marker and entry.marker.kind == "tensors")
    assert (cache.standing, cache.text) == ("broken", closed.text)


@pytest.mark.parametrize(
    ("limits", "reason", "way_out"),
    [
        (Limits(memory_start=1 << 60), "no_memory", "ttx doctor"),
        (Limits(memory_start=0, disk_floor=1 << 60), "no_space", "ttx cache gc"),
    ],
)
def test_a_start_without_room_is_refused_before_anything_is_made(
    world: World, limits: Limits, reason: str, way_out: str
) -> None:
    outcome = world.execute(world.arm(), limits=limits)
    assert outcome.error is not None
    assert (outcome.exit_code, outcome.error.reason) == (3, reason)
    assert way_out in outcome.error.hint
    assert survey(world.places.cache) == ()
    assert world.record(outcome.run).outcome == "refused"
    assert world.clean()
