"""The real host and the simulated one beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.host.places import find_places, simulated_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.host.types import Card, Places, Roots

SIMULATED_CARDS = 2


def places_for(environ: Mapping[str, str], *, simulated: bool) -> Places:
    """Say where things are on the host that is meant, making the simulated one when it is not there."""
    if not simulated:
        return find_places(simulated=False, environ=environ)
    from ttstack.sim.host import make_host  # noqa: PLC0415 - only when it is meant

    roots = make_host(simulated_tree(environ), cards=SIMULATED_CARDS)
    return find_places(simulated=True, environ=environ, roots=roots)


def all_places(environ: Mapping[str, str]) -> list[Places]:
    """Give the real host's places, and the simulated one's when there is one already."""
    found = [find_places(simulated=False, environ=environ)]
    if simulated_tree(environ).is_dir():
        found.append(places_for(environ, simulated=True))
    return found


def lacking_hugepages(cards: Sequence[Card], roots: Roots) -> str:
    """Say that this host has too few 1 GiB hugepages for its cards, and the way out; "" when it has enough."""
    from ttstack.host.cards import hugepages_missing, reserved_hugepages  # noqa: PLC0415 - only when it is asked

    if not hugepages_missing(cards, roots):
        return ""
    needed = sum(card.hugepages_needed for card in cards)
    return (
        f"this host's cards need {needed} hugepage(s) of 1 GiB, and {reserved_hugepages(roots) or 0} are reserved:"
        f" boot with hugepagesz=1G hugepages={needed}, or with an IOMMU that translates (without iommu=pt)"
    )
