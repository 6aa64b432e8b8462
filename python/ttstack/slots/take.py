"""Take slots: all the cards of a request or none, in one order, fairly, and only cards that nobody has open."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.host.cards import inventory
from ttstack.host.holders import holders
from ttstack.slots import legacy, line
from ttstack.slots.claim import NOBODY_KNOWN, from_note
from ttstack.slots.errors import BusyError
from ttstack.slots.key import Key, try_key
from ttstack.slots.lock import guarded, lock_folder, open_lock, read_note, write_note
from ttstack.slots.select import Want, share, want

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ttstack.host.types import Card, Places
    from ttstack.slots.claim import Claim

_POLL_S = 0.025  # a release is seen within this
_POLL_HELD_S = 0.5  # somebody has the node open without a lock: looking means to walk /proc


def lock_name(card_id: str) -> str:
    """Name a card's lock file: the id with all but letters, digits, dot and dash replaced."""
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in card_id) + ".lock"


def guard_path(locks: Path) -> Path:
    """Name the lock under which cards are taken and looked at; it is held for moments only."""
    return locks / "guard"


@dataclass(slots=True)
class Slot:
    """The right to use cards, as long as one of the descriptors is open in some process."""

    cards: tuple[Card, ...]
    keys: dict[str, Key]  # by card id
    legacy: int | None
    legacy_place: Path | None
    locks: Path
    released: bool = field(default=False)

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors to pass to whoever shall hold the cards too: two for each card, and the older drivers' lock."""
        pairs = [fd for key in self.keys.values() for fd in (key.lock, key.name)]
        return (*pairs, *(() if self.legacy is None else (self.legacy,)))

    def write(self, claim: Claim) -> None:
        """Say in every lock file who holds it."""
        for key in self.keys.values():
            write_note(key.lock, claim.to_note())

    def let_go(self) -> None:
        """Close our descriptors only: whoever got copies keeps the cards."""
        if not self.released:
            self.released = True
            for handle in self.fds:
                os.close(handle)

    def release(self, *, heirs: bool = False) -> None:
        """Give the cards back. The text inside is emptied first, unless ``heirs`` may go on under it."""
        if self.released:
            return
        for key in () if heirs else self.keys.values():
            write_note(key.lock, None)
        self.let_go()
        if self.legacy_place is not None:
            with guarded(guard_path(self.locks), time.sleep):
                legacy.sweep(self.legacy_place)


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted, and how long to wait for it. ``wait_s`` 0: not at all; None: for ever."""

    count: int
    names: tuple[str, ...]  # as an arm may name cards; empty: any
    wait_s: float | None
    legacy: Path | None = None  # where older drivers' lock directory is; None: there are no such drivers


@dataclass(frozen=True, slots=True)
class _Refused:
    why: str
    held_without_lock: bool = False


def acquire(
    request: Request,
    places: Places,
    *,
    waiting: Callable[[str], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
) -> Slot:
    """Take cards. ``waiting`` is told, once for each new answer, who has them; ``check`` may raise to give up.

    Raises NoSuchCardError, BusyError (exit 3) when the wait is over, HostError and SlotsError.
    """
    lock_folder(places.locks)
    cards = inventory(places.roots)
    mine = want(request.count, request.names, cards)
    until = None if request.wait_s is None else time.monotonic() + request.wait_s
    taker = _Taker(request, places, cards, mine, check)
    with ExitStack() as undo:
        answer = taker.attempt(undo)
        told = ""
        while isinstance(answer, _Refused):
            if until is not None and time.monotonic() >= until:
                raise _busy(answer.why, request)
            if answer.why != told:
                told = answer.why
                waiting(told)
            _pause(_POLL_HELD_S if answer.held_without_lock else _POLL_S, until, check)
            answer = taker.attempt(undo)
        return answer


def _pause(seconds: float, until: float | None, check: Callable[[], None]) -> None:
    """Sleep in short naps, so that an interrupt is seen soon."""
    end = time.monotonic() + seconds
    if until is not None:
        end = min(end, until)
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _POLL_S))
    check()


def _busy(why: str, request: Request) -> BusyError:
    waited = f" after waiting {request.wait_s:g} s" if request.wait_s else ""
    return BusyError(f"the cards are not free{waited}: {why}", hint="see: ttx slot ls; wait longer with --wait SECONDS")


@dataclass(slots=True)
class _Taker:
    request: Request
    places: Places
    cards: Sequence[Card]
    mine: Want
    check: Callable[[], None]
    ticket: line.Ticket | None = None

    def attempt(self, undo: ExitStack) -> Slot | _Refused:
        """Try once. The first refusal makes us stand in line (unless we are not to wait); success steps out of it."""
        with guarded(guard_path(self.places.locks), self._nap):
            answer = self._attempt()
            if isinstance(answer, _Refused):
                if self.ticket is None and self.request.wait_s != 0:
                    self.ticket = line.join(self.places.locks / "line", self.mine)
                    undo.callback(line.leave, self.ticket)
                return answer
            if self.ticket is not None:
                undo.close()
            return answer

    def _nap(self, seconds: float) -> None:
        self.check()
        time.sleep(seconds)

    def _attempt(self) -> Slot | _Refused:
        wanted = [card for card in self.cards if not self.mine.ids or card.id in self.mine.ids]
        held: dict[str, Key] = {}
        with ExitStack() as undo:
            for card in sorted(wanted, key=lambda card: card.id):
                key = try_key(self.places.locks / lock_name(card.id))
                if key is not None:
                    held[card.id] = key
                    undo.callback(key.close)
            older = line.older(self.places.locks / "line", self.ticket)
            choice = share(self.mine, older, list(held))
            if not choice:
                return self._who(wanted, held)
            picked = self._unheld({card.id: card for card in wanted}, choice)
            if isinstance(picked, _Refused):
                return picked
            kept = None
            if self.request.legacy is not None:
                kept = legacy.join(self.request.legacy)
                if kept is None:
                    return _Refused(f"another driver holds {self.request.legacy}, which ttx never breaks")
            undo.pop_all()
            for card_id, key in held.items():
                if card_id not in {card.id for card in picked}:
                    key.close()
            keys = {card.id: held[card.id] for card in picked}
            return Slot(picked, keys, kept, self.request.legacy, self.places.locks)

    def _unheld(self, cards: dict[str, Card], choice: Sequence[str]) -> tuple[Card, ...] | _Refused:
        """Pick the first of the chosen cards that no process and no container has, in BDF order."""
        picked: list[Card] = []
        against: list[str] = []
        seen = holders([cards[card_id] for card_id in choice], self.places.roots, simulated=self.places.simulated)
        for card_id in choice:
            if seen[card_id].free:
                picked.append(cards[card_id])
            else:
                against.append(f"card {card_id} is not free: {seen[card_id]}")
            if len(picked) == self.mine.count:
                return tuple(sorted(picked, key=lambda card: card.bdf))
        return _Refused("; ".join(against), held_without_lock=True)

    def _who(self, wanted: Sequence[Card], held: dict[str, Key]) -> _Refused:
        taken = [card for card in wanted if card.id not in held]
        if not taken:
            return _Refused("others stand in line for them")
        claims = [(card, from_note(read_note(self.places.locks / lock_name(card.id)))) for card in taken]
        return _Refused("; ".join(f"card {card.id} is held by {claim or NOBODY_KNOWN}" for card, claim in claims))


def retake(cards: Sequence[Card], locks: Path, legacy_place: Path | None) -> Slot:
    """Take the locks of cards whose engine runs already, all or none, whoever has the cards open.

    Only for who takes over that very engine. Raises BusyError when somebody holds a lock, and SlotsError.
    """
    lock_folder(locks)
    with guarded(guard_path(locks), time.sleep), ExitStack() as undo:
        held: dict[str, Key] = {}
        for card in cards:
            key = try_key(locks / lock_name(card.id))
            if key is None:
                claim = from_note(read_note(locks / lock_name(card.id)))
                raise BusyError(f"card {card.id} is held by {claim or NOBODY_KNOWN}", hint="see: ttx slot ls")
            held[card.id] = key
            undo.callback(key.close)
        kept = None if legacy_place is None else legacy.join(legacy_place)
        if legacy_place is not None and kept is None:
            raise BusyError(f"another driver holds {legacy_place}, which ttx never breaks", hint="see: ttx slot ls")
        undo.pop_all()
        return Slot(tuple(cards), held, kept, legacy_place, locks)


def sign(slot: Slot, claim: Claim) -> None:
    """Say in the locks of all cards of a slot who holds them now, in those too whose lock an engine has alone."""
    for card in slot.cards:
        key = slot.keys.get(card.id)
        if key is not None:
            write_note(key.lock, claim.to_note())
            continue
        path = slot.locks / lock_name(card.id)
        loose = open_lock(path)
        try:
            write_note(loose, claim.to_note())
        finally:
            os.close(loose)


def adopt(cards: Sequence[Card], handles: Sequence[int], locks: Path, legacy_place: Path | None) -> Slot:
    """Make a slot of inherited descriptors, in the order of ``cards`` and ``Slot.fds``; children get them no more."""
    for handle in handles:
        os.set_inheritable(handle, False)  # noqa: FBT003 - os has it positional only
    pairs = zip(handles[::2], handles[1::2], strict=False)
    ours = {card.id: Key(*pair) for card, pair in zip(cards, pairs, strict=False)}
    kept = handles[-1] if len(handles) > 2 * len(ours) else None
    return Slot(tuple(cards), ours, kept, legacy_place, locks)
