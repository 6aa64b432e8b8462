"""One try to take cards: lock those that may be had, look who has them, and only then keep them.

The keys are taken under the guard. The look, which asks engines of containers and may take seconds, happens without it,
with the keys in hand: who comes meanwhile finds these cards taken, and every other card as it is.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.host.containers import any_engine
from ttstack.host.holders import holders
from ttstack.slots import legacy, line
from ttstack.slots.claim import NOBODY_KNOWN, from_note
from ttstack.slots.key import Key, try_key
from ttstack.slots.lock import guarded, read_note, write_note
from ttstack.slots.looking import announce, is_looked_at
from ttstack.slots.select import Want, share
from ttstack.slots.slot import Slot, guard_path, lock_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ttstack.host.types import Card, Places
    from ttstack.slots.slot import Request

_BELIEVED_S = 0.5  # how long a card that somebody has without a lock is not looked at again
_OTHERS = "others were first: they wait for them, or look whether they are free"


@dataclass(frozen=True, slots=True)
class Refused:
    """No cards now. ``passing``: somebody is looking at a card at this moment and may give it back at once."""

    why: str
    passing: bool = False


@dataclass(frozen=True, slots=True)
class _Locked:
    """Cards whose keys we have (``keys``), and all that could be locked."""

    keys: Mapping[str, Key]  # by card id
    lockable: tuple[str, ...]  # card ids, sorted


@dataclass(slots=True)
class Taker:
    """Tries to meet one request, as often as it is told to."""

    request: Request
    places: Places
    cards: Sequence[Card]
    mine: Want
    check: Callable[[], None]
    ticket: line.Ticket | None = None
    against: dict[str, tuple[str, float]] = field(default_factory=dict)  # why a card is not free; believed until when

    def attempt(self, undo: ExitStack) -> Slot | Refused:
        """Try once. Who is to wait stands in line when he is refused; success steps out of it. Raises SlotsError.

        Where to look takes long, it is before the look: who comes meanwhile comes later.
        """
        for _ in range(len(self.cards) + 1):
            with ExitStack() as kept:
                with self._guarded():
                    locked = self._lock(kept)
                    if isinstance(locked, Refused) or not self._is_quick():
                        self._stand_in_line(undo)
                if isinstance(locked, Refused):
                    return locked
                free = self._look(locked)
                with self._guarded():
                    answer = self._keep(locked, kept) if free else None
                    if isinstance(answer, Slot):
                        undo.close()
                    else:
                        kept.close()  # here, where nobody sees a card that is held and not looked at any more
                        self._stand_in_line(undo)
                if answer is not None:
                    return answer
        return Refused("; ".join(why for why, _ in self.against.values()) or _OTHERS)

    def _is_quick(self) -> bool:
        return self.places.simulated or not any_engine()

    def _stand_in_line(self, undo: ExitStack) -> None:
        if self.ticket is None and self.request.wait_s != 0:
            self.ticket = line.join(self.places.locks / "line", self.mine)
            undo.callback(line.leave, self.ticket)

    def _guarded(self) -> AbstractContextManager[None]:
        return guarded(guard_path(self.places.locks), self._nap)

    def _nap(self, seconds: float) -> None:
        self.check()
        time.sleep(seconds)

    def _path(self, card_id: str) -> Path:
        return self.places.locks / lock_name(card_id)

    def _wanted(self) -> list[Card]:
        return [card for card in self.cards if not self.mine.ids or card.id in self.mine.ids]

    def _older(self) -> Iterable[Want]:
        return line.older(self.places.locks / "line", self.ticket)

    def _lock(self, kept: ExitStack) -> _Locked | Refused:
        """Take the keys of as many cards as are wanted, of those that we may have."""
        now = time.monotonic()
        self.against = {card_id: entry for card_id, entry in self.against.items() if entry[1] > now}
        held: dict[str, Key] = {}
        with ExitStack() as undo:
            for card in sorted(self._wanted(), key=lambda card: card.id):
                key = None if card.id in self.against else try_key(self._path(card.id), card)
                if key is not None:
                    held[card.id] = key
                    undo.callback(key.close)
            choice = share(self.mine, self._older(), list(held))[: self.mine.count]
            if not choice:
                return self._refuse(held)
            undo.pop_all()
            for card_id, key in held.items():
                if card_id in choice:
                    kept.callback(key.close)
                else:
                    key.close()
        for card_id in choice:
            kept.callback(announce(self._path(card_id), held[card_id]))
        return _Locked({card_id: held[card_id] for card_id in choice}, tuple(held))

    def _look(self, locked: _Locked) -> bool:
        """Look who has the cards that could be locked; say whether nobody has those whose keys we have."""
        cards = [card for card in self.cards if card.id in locked.lockable]
        seen = holders(cards, self.places.roots, simulated=self.places.simulated)
        until = time.monotonic() + _BELIEVED_S
        for card_id, found in seen.items():
            if not found.free:
                self.against[card_id] = (f"card {card_id} is not free: {found}", until)
        return all(seen[card_id].free for card_id in locked.keys)

    def _keep(self, locked: _Locked, kept: ExitStack) -> Slot | Refused | None:
        """Make a slot of what we have; None when somebody older is to have it, as a card of his choice is not free."""
        free = [card_id for card_id in locked.lockable if card_id not in self.against]
        if not set(locked.keys) <= set(share(self.mine, self._older(), free)):
            return None
        joined = None
        if self.request.legacy is not None:
            joined = legacy.join(self.request.legacy)
            if joined is None:
                return Refused(f"another driver holds {self.request.legacy}, which ttx never breaks")
        for key in locked.keys.values():
            write_note(key.lock, None)
        kept.pop_all()
        cards = tuple(sorted((card for card in self.cards if card.id in locked.keys), key=lambda card: card.bdf))
        keys = {card.id: locked.keys[card.id] for card in cards}
        return Slot(cards, keys, joined, self.request.legacy, self.places.locks)

    def _refuse(self, lockable: Iterable[str]) -> Refused:
        """Say who has the cards. Under the guard."""
        looked_at = {card.id for card in self.cards if is_looked_at(self._path(card.id), card)}
        reasons = []
        for card in self._wanted():
            if card.id in self.against:
                reasons.append(self.against[card.id][0])
            elif card.id not in {*lockable, *looked_at}:
                reasons.append(f"card {card.id} is held by {from_note(read_note(self._path(card.id))) or NOBODY_KNOWN}")
        return Refused("; ".join(reasons) or _OTHERS, passing=bool(looked_at))
