"""Which cards a launch takes: without looking at the host, or among those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.host.types import Card, asic_in
from ttstack.render.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.arm.types import Asked

NODES = "/dev/tenstorrent"
UNKNOWN = -1
"""``Card.number`` of a card whose node number only the host knows."""


def visible_to_process(cards: Sequence[Card], *, simulated: bool) -> tuple[str, ...]:
    """Name cards as TT_VISIBLE_DEVICES does for a process, which sees all of the host's.

    UMD takes an integer for a position in the BDF-sorted list of what it sees, and a BDF for itself (tt-umd#2057).
    """
    if not simulated and all(card.bdf for card in cards):
        return tuple(card.bdf for card in cards)
    # The simulated host numbers its nodes in the order of BDFs, and its engine sees nothing but nodes.
    return tuple(str(card.number) for card in cards)


def nominal_cards(asked: Asked) -> tuple[Card, ...]:
    """Name the cards without looking at the host, as the NixOS module does.

    Without ids: ``/dev/tenstorrent/0`` and up. With ids: udev's links, whose numbers are ``UNKNOWN``. Raises
    RenderError for an id that only the host can resolve (BDF, serial) and for two ids that are one card.
    """
    ids = asked.arm.cards.ids
    if not ids:
        return tuple(_nominal(f"{NODES}/{number}", number, "") for number in range(asked.arm.cards.count))
    _check_count(asked)
    cards = []
    for name in ids:
        asic_id = asic_in(name)
        if not asic_id:
            raise RenderError(
                f"arm {asked.arm.name}: which node the card {name!r} has is known on its host only",
                hint="--here looks at this host; udev's name (blackhole-<asic id>) needs no look",
            )
        cards.append(_nominal(f"{NODES}/by-id/{name}", UNKNOWN, asic_id))
    _check_distinct(asked, [card.asic_id for card in cards])
    return tuple(cards)


def choose_cards(asked: Asked, inventory: Sequence[Card]) -> tuple[Card, ...]:
    """Take the arm's cards from those that are there, in the arm's order; without ids, the first ones.

    Raises RenderError for an unknown id (see ``Card.goes_by``), two ids that are one card, and too few cards.
    """
    wanted = asked.arm.cards
    if not wanted.ids:
        if len(inventory) < wanted.count:
            raise RenderError(
                f"arm {asked.arm.name} wants {wanted.count} of the cards here, and there are {len(inventory)}",
                hint=_listing(inventory),
            )
        return tuple(inventory[: wanted.count])
    _check_count(asked)
    chosen = tuple(_find(asked, name, inventory) for name in wanted.ids)
    _check_distinct(asked, [card.bdf for card in chosen])
    return chosen


def _nominal(node: str, number: int, asic_id: str) -> Card:
    return Card(node=node, number=number, bdf="", serial="", asic_id=asic_id, board="")


def _find(asked: Asked, name: str, inventory: Sequence[Card]) -> Card:
    found = [card for card in inventory if card.goes_by(name)]
    if not found:
        raise RenderError(f"arm {asked.arm.name}: no card {name!r} here", hint=_listing(inventory))
    if len(found) > 1:
        raise RenderError(
            f"arm {asked.arm.name}: {name!r} could be {' or '.join(card.bdf for card in found)}",
            hint="name the card by its BDF",
        )
    return found[0]


def _check_count(asked: Asked) -> None:
    wanted = asked.arm.cards
    if len(wanted.ids) != wanted.count:
        raise RenderError(f"arm {asked.arm.name}: cards.count is {wanted.count}, but {len(wanted.ids)} cards are named")


def _check_distinct(asked: Asked, keys: Sequence[str]) -> None:
    ids = asked.arm.cards.ids
    for at, key in enumerate(keys):
        first = keys.index(key)
        if first != at:
            raise RenderError(
                f"arm {asked.arm.name}: cards.ids names two cards that are one: {ids[first]!r} and {ids[at]!r}",
                hint="name each card once",
            )


def _listing(inventory: Sequence[Card]) -> str:
    if not inventory:
        return "there are no cards here"
    lines = (
        " ".join(filter(None, (card.bdf, card.serial, card.asic_id and f"asic {card.asic_id}", card.board, card.node)))
        for card in inventory
    )
    return "here are: " + "; ".join(lines)
