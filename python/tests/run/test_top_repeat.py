"""What is looked at again and again: it may hang, fail, take long."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ttstack.errors import TtxError
from ttstack.run.top.repeat import Repeat
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ending() -> Iterator[list[Repeat[int]]]:
    made: list[Repeat[int]] = []
    yield made
    for each in made:
        each.stop()


def test_a_look_that_hangs_leaves_what_was_seen(ending: list[Repeat[int]]) -> None:
    hang, seen = threading.Event(), iter([1])

    def look() -> int:
        for value in seen:
            return value
        hang.wait(20)
        return 2

    repeat = Repeat("test", look, 0.01).start()
    ending.append(repeat)
    assert wait_until(lambda: repeat.late_s > 0.05, 20)
    assert (repeat.value, repeat.looks) == (1, 1)
    hang.set()
    assert wait_until(lambda: repeat.value == 2, 20)


def test_what_went_wrong_is_said_until_it_goes_right(ending: list[Repeat[int]]) -> None:
    faults: list[Exception | None] = [None, TtxError("no card"), OSError(5, "broken", "/sys/x"), OSError("odd"), None]
    told: list[str] = []

    def look() -> int:
        told.append(repeat.trouble)
        fault = faults.pop(0) if faults else None
        if fault is not None:
            raise fault
        return len(told)

    repeat = Repeat("test", look, 0.001)
    ending.append(repeat.start())
    assert wait_until(lambda: len(told) > 5, 20)
    assert told[:6] == ["", "", "no card", "/sys/x: broken", "odd", ""]
    assert repeat.value is not None


def test_a_fault_of_ours_is_raised_where_the_value_is_asked_for(ending: list[Repeat[int]]) -> None:
    def look() -> int:
        return 1 // 0

    repeat = Repeat("test", look, 0.001).start()
    ending.append(repeat)

    def raised() -> bool:
        try:
            return repeat.value is not None
        except ZeroDivisionError:
            return True

    assert wait_until(raised, 20)


def test_a_kick_does_not_wait_and_a_stop_ends(ending: list[Repeat[int]]) -> None:
    after: list[int] = []
    repeat = Repeat("test", lambda: 1, 3600, then=lambda: after.append(1)).start()
    ending.append(repeat)
    assert wait_until(lambda: repeat.looks == 1, 20)
    repeat.kick()
    assert wait_until(lambda: repeat.looks == 2 and after == [1, 1], 20)
    repeat.stop()
    repeat._thread.join(5)
    assert not repeat._thread.is_alive()


@pytest.mark.parametrize(
    ("took", "rest", "pause"), [(0.0, 50, 5.0), (0.05, 50, 5.0), (0.5, 50, 25.5), (10.0, 50, 70.0), (1.0, 0.5, 5.0)]
)
def test_what_takes_long_is_looked_at_less_often(
    monkeypatch: pytest.MonkeyPatch, took: float, rest: float, pause: float
) -> None:
    now, pauses = [100.0], []

    def look() -> int:
        now[0] += took
        return 1

    repeat = Repeat("test", look, 5.0, rest=rest)

    def note(until: float) -> None:
        pauses.append(until - 100.0)
        repeat.stop()

    monkeypatch.setattr("ttstack.run.top.repeat.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(repeat, "_pause", note)
    repeat._go_on()
    assert pauses == [pytest.approx(pause)]
