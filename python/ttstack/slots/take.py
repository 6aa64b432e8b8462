"""Take slots: all the cards of a request or none, in one order, fairly, and only cards that nobody has open."""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ttstack.host.cards import inventory
from ttstack.slots import legacy
from ttstack.slots.attempt import Refused, Taker
from ttstack.slots.errors import BusyError
from ttstack.slots.key import Key, try_key
from ttstack.slots.lock import guarded, lock_folder, open_lock, write_note
from ttstack.slots.looking import is_looked_at, who
from ttstack.slots.select import want
from ttstack.slots.slot import Request, Slot, guard_path, lock_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ttstack.host.types import Card, Places
    from ttstack.slots.claim import Claim

__all__ = ["Request", "Slot", "acquire", "adopt", "guard_path", "lock_name", "retake", "sign"]

_POLL_S = 0.025  # a release is seen within this
_PASSING_S = 1.0  # how long even who does not wait waits for somebody who is only looking
_LOOKERS_S = 30.0  # the same for who takes over an engine


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
    taker = Taker(request, places, cards, mine, check)
    with ExitStack() as undo:
        answer = taker.attempt(undo)
        told = ""
        while isinstance(answer, Refused):
            late = -math.inf if until is None else time.monotonic() - until
            if late >= (_PASSING_S if answer.passing else 0):
                raise _busy(answer.why, request)
            if answer.why != told and late < 0:
                told = answer.why
                waiting(told)
            check()
            time.sleep(min(_POLL_S, -late) if late < 0 else _POLL_S)
            check()
            answer = taker.attempt(undo)
        return answer


def _busy(why: str, request: Request) -> BusyError:
    waited = f" after waiting {request.wait_s:g} s" if request.wait_s else ""
    return BusyError(f"the cards are not free{waited}: {why}", hint="see: ttx slot ls; wait longer with --wait SECONDS")


def retake(cards: Sequence[Card], locks: Path, legacy_place: Path | None) -> Slot:
    """Take the locks of cards whose engine runs already, all or none, whoever has the cards open.

    Only for who takes over that very engine. Raises BusyError when somebody holds a lock, and SlotsError.
    """
    lock_folder(locks)
    until = time.monotonic() + _LOOKERS_S
    slot = None
    while slot is None:
        with guarded(guard_path(locks), time.sleep):
            slot = _retake(cards, locks, legacy_place, patient=time.monotonic() < until)
        if slot is None:
            time.sleep(_POLL_S)
    return slot


def _retake(cards: Sequence[Card], locks: Path, legacy_place: Path | None, *, patient: bool) -> Slot | None:
    """Try once, under the guard; None when one of the cards is only being looked at."""
    with ExitStack() as undo:
        held: dict[str, Key] = {}
        for card in cards:
            path = locks / lock_name(card.id)
            key = try_key(path, card)
            if key is None and patient and is_looked_at(path, card):
                return None
            if key is None:
                raise BusyError(f"card {card.id} is held by {who(path)}", hint="see: ttx slot ls")
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
