"""The plan of an A/B, made before anything is measured: which cell runs when, and on which card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_PAIRS = 500
Mode = Literal["swap", "turns"]
"""swap: one card each, both at once, and they change cards; turns: one after the other on the same cards."""


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One run to be made. ``cards``: ids of slots."""

    pair: int
    side: Literal["A", "B"]
    order: Literal["ab", "ba", ""]  # "": both at once
    position: int  # among the runs of the A/B, from 0; two that run at once have one
    cards: tuple[str, ...]


def orders(pairs: int) -> tuple[bool, ...]:
    """Say of each pair whether A comes first, or is on the first card.

    A B B A, then B A A B: what drifts evenly from run to run takes the same from both arms, and over four pairs so
    does what drifts faster and faster. An even number has as many of one kind as of the other.
    """
    return tuple(at % 4 in {0, 3} for at in range(pairs))


PlannedPair = tuple[PlannedCell, ...]


def planned(mode: Mode, pairs: int, cards: Sequence[str], counts: tuple[int, int]) -> tuple[PlannedPair, ...]:
    """Plan all pairs, each as the cells that it has, in the order in which they start.

    ``cards``: for a swap the two, else as many as the larger arm takes. ``counts``: how many each arm takes.
    """
    made: list[PlannedPair] = []
    for pair, first in enumerate(orders(pairs)):
        if mode == "swap":
            one, two = (cards[0], cards[1]) if first else (cards[1], cards[0])
            made.append((PlannedCell(pair, "A", "", pair, (one,)), PlannedCell(pair, "B", "", pair, (two,))))
            continue
        order: Literal["ab", "ba"] = "ab" if first else "ba"
        a = PlannedCell(pair, "A", order, 2 * pair + (0 if first else 1), tuple(cards[: counts[0]]))
        b = PlannedCell(pair, "B", order, 2 * pair + (1 if first else 0), tuple(cards[: counts[1]]))
        made.append((a, b) if first else (b, a))
    return tuple(made)
