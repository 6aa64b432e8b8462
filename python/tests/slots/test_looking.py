"""A look at who has a card may take long: it holds up nobody else, and nobody gets what is being looked at."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from ttstack.host.containers import Container
from ttstack.host.holders import Holders
from ttstack.host.process import myself
from ttstack.host.types import Places, ProcessId
from ttstack.sim.host import make_host
from ttstack.slots import attempt, line, take
from ttstack.slots.claim import new_claim
from ttstack.slots.errors import BusyError
from ttstack.slots.key import Key
from ttstack.slots.lock import lock_folder, read_note, try_lock
from ttstack.slots.select import Want
from ttstack.slots.slot import Request, Slot, guard_path
from ttstack.slots.take import acquire, retake
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ttstack.host.types import Card, Roots

A, B = "0000:01:00.0", "0000:02:00.0"
HELD = Holders(containers=(Container("docker", "ab" * 32, "engine", None, "privileged"),))


@dataclass
class Engines:
    """Looks at cards that take as long as we let them; ``held`` are the BDFs of cards that somebody has."""

    held: set[str] = field(default_factory=set)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    slow: bool = False
    looks: list[list[str]] = field(default_factory=list)

    def __call__(self, cards: Sequence[Card], _roots: Roots, *, simulated: bool) -> dict[str, Holders]:
        del simulated
        self.looks.append([card.bdf for card in cards])
        if self.slow and threading.current_thread() is not threading.main_thread():
            self.begun.release()
            assert self.go.acquire(timeout=20)
        return {card.id: HELD if card.bdf in self.held else Holders() for card in cards}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    roots = make_host(tmp_path / "tree", cards=2)
    return Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=False)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    told = Engines()
    monkeypatch.setattr(attempt, "holders", told)
    monkeypatch.setattr("ttstack.slots.view.holders", told)
    monkeypatch.setattr(attempt, "any_engine", lambda: True)
    return told


@contextmanager
def looking(places: Places, engines: Engines, *names: str, count: int = 1, wait_s: float = 0) -> Iterator[list[object]]:
    """Let somebody take cards, who is still looking."""
    got: list[object] = []

    def other() -> None:
        try:
            got.append(acquire(Request(count, names, wait_s), places))
        except BusyError as error:
            got.append(error)

    engines.slow, engines.go = True, threading.Semaphore(0)
    thread = threading.Thread(target=other)
    thread.start()
    assert engines.begun.acquire(timeout=20)
    try:
        yield got
    finally:
        engines.slow = False
        for _ in range(5):
            engines.go.release()
        thread.join(20)
        for slot in got:
            if isinstance(slot, Slot):
                slot.release()


def ask(places: Places, *names: str, count: int = 1, wait_s: float = 0) -> Slot:
    return acquire(Request(count, names, wait_s), places)


def test_other_cards_are_had_meanwhile_and_the_guard_is_free(places: Places, engines: Engines) -> None:
    with looking(places, engines) as got:  # any card: the first
        guard = try_lock(guard_path(places.locks))
        assert guard is not None
        os.close(guard)
        assert look(places)[0].text == "another ttx that looks whether it is free"
        ask(places, B).release()
        slot = ask(places)  # any: who looks has taken no more than it wants
        assert slot.cards[0].bdf == B
        slot.release()
    assert isinstance(got[0], Slot)


def test_who_does_not_wait_waits_for_a_look_but_not_for_long(
    places: Places, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take, "_PASSING_S", 0.05)
    with looking(places, engines, A), pytest.raises(BusyError, match="look whether they are free"):
        ask(places, A)
    monkeypatch.setattr(take, "_PASSING_S", 20)
    engines.held = {B}
    with looking(places, engines, A, B, count=2) as got:
        threading.Timer(0.1, engines.go.release).start()
        ask(places, A).release()  # which the other gives back, as B is not free
    assert isinstance(got[0], BusyError)


def test_a_look_that_finds_somebody_leaves_the_text_of_an_engine_whose_supervisor_died(
    places: Places, engines: Engines
) -> None:
    ask(places, A).release()
    (path,) = places.locks.glob("*.lock")
    claim = replace(new_claim("run-1", "prod", myself()), process=ProcessId(1 << 30, 1))
    path.write_text(json.dumps(claim.to_note()))
    engines.held = {A}
    for _ in range(2):
        with pytest.raises(BusyError, match="container engine"):
            ask(places, A)
        assert read_note(path) == claim.to_note()


def test_who_looks_for_long_keeps_its_place_in_the_line(places: Places, engines: Engines) -> None:
    order: list[str] = []
    engines.held = {A}

    def second() -> None:
        slot = ask(places, A, wait_s=20)
        order.append("second")
        slot.release()

    with looking(places, engines, A, wait_s=20) as got:
        thread = threading.Thread(target=second)
        thread.start()
        for _ in range(1000):
            if len(list((places.locks / "line").iterdir())) == 2:
                break
            time.sleep(0.01)
        engines.held = set()
        engines.slow = False
        engines.go.release()
        for _ in range(1000):
            if got:
                break
            time.sleep(0.01)
        assert (len(got), order) == (1, [])
    assert isinstance(got[0], Slot)
    thread.join(20)
    assert order == ["second"]


def test_who_came_first_gets_the_only_card_that_is_free_indeed(places: Places, engines: Engines) -> None:
    engines.held = {A}  # which the lock alone does not tell
    lock_folder(places.locks)
    ticket = line.join(places.locks / "line", Want(1))  # it waits, and will look again in a moment
    with pytest.raises(BusyError, match="container engine"):
        ask(places)
    line.leave(ticket)
    slot = ask(places)
    assert slot.cards[0].bdf == B
    slot.release()


def test_what_somebody_has_without_a_lock_is_not_looked_at_all_the_time(places: Places, engines: Engines) -> None:
    engines.held = {A}
    slot = ask(places, B)
    engines.looks.clear()
    with pytest.raises(BusyError):
        ask(places, wait_s=0.3)
    assert engines.looks == [[A]]
    slot.release()


def test_who_takes_over_an_engine_waits_for_who_only_looks(
    places: Places, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = [view.card for view in look(places)][:1]
    engines.held = {A}
    with looking(places, engines, A):
        threading.Timer(0.1, engines.go.release).start()
        retake(cards, places.locks, None).release()
    monkeypatch.setattr(take, "_LOOKERS_S", 0)
    with looking(places, engines, A), pytest.raises(BusyError, match="another ttx that looks"):
        retake(cards, places.locks, None)


def test_the_text_of_a_look_that_was_killed_is_no_look(places: Places, engines: Engines) -> None:
    ask(places, A, B, count=2).release()
    for path in places.locks.glob("*.lock"):
        path.write_text('{"looking": 1}')
    assert [view.state for view in look(places)] == ["free", "free"]
    engines.held = {A}
    with pytest.raises(BusyError, match="container engine"):
        ask(places, A, B, count=2)
    slot = ask(places, B)
    assert look(places)[1].text == "somebody who left no name"
    with pytest.raises(BusyError, match="is held by somebody who left no name"):
        ask(places, B)
    slot.release()


def test_nobody_waits_for_a_look_that_was_killed(
    places: Places, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(places, A).release()
    (path,) = places.locks.glob("*.lock")
    path.write_text('{"looking": 1}')
    monkeypatch.setattr(take, "_PASSING_S", 20)
    monkeypatch.setattr(take.time, "sleep", lambda _: pytest.fail("waits"))
    slot = ask(places, B)
    assert engines.looks
    with pytest.raises(BusyError, match="left no name"):
        ask(places, B)
    slot.release()


def test_a_look_ends_at_one_stroke_for_who_waits_for_it(
    places: Places, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.held = {A}
    guarded: list[bool] = []
    real = Key.close

    def close(key: Key) -> None:
        probe = try_lock(guard_path(places.locks))
        guarded.append(probe is None)
        if probe is not None:
            os.close(probe)
        real(key)

    monkeypatch.setattr(Key, "close", close)
    with pytest.raises(BusyError):
        ask(places, A)
    assert guarded == [True]
