"""The plan of an A/B on this host: on which cards, both at once or in turns, and as which arms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ttstack.bench.ab.design import planned
from ttstack.errors import UsageError
from ttstack.records.build import new_run_id
from ttstack.records.context import AbPlace
from ttstack.slots.select import want

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ttstack.arm.types import Arm, Asked
    from ttstack.bench.ab.design import Mode, PlannedCell, PlannedPair
    from ttstack.host.types import Card
    from ttstack.records.types import Json

FEWEST_PAIRS = 4
"""Two pairs of one swap leave nothing to tell noise by."""


@dataclass(frozen=True, slots=True)
class AbPlan:
    """Everything about an A/B that is settled before anything is measured; ``a`` and ``b`` as they run."""

    id: str
    a: Asked
    b: Asked
    mode: Mode
    pairs: int
    cards: tuple[str, ...]  # ids of slots: the two that change places, else those that both arms share
    suite: str
    settings: Mapping[str, Json]  # of the suite
    metric: str
    other_outputs: bool = False

    @property
    def simulated(self) -> bool:
        """Whether no card is involved."""
        return self.a.arm.engine.kind == "sim"

    @property
    def one_arm(self) -> bool:
        """Whether it is an A/A."""
        return self.a.arm.file == self.b.arm.file

    def cells(self) -> tuple[PlannedPair, ...]:
        """Give the runs of all pairs."""
        return planned(self.mode, self.pairs, self.cards, (self.a.arm.cards.count, self.b.arm.cards.count))

    def asked(self, cell: PlannedCell) -> Asked:
        """Give what a run asks for."""
        return self.a if cell.side == "A" else self.b

    def place(self, cell: PlannedCell, attempt: int) -> AbPlace:
        """Give what is written into a run's record."""
        return AbPlace(
            id=self.id,
            pairs=self.pairs,
            metric=self.metric,
            other_outputs=self.other_outputs,
            pair=cell.pair,
            side=cell.side,
            order=cell.order,
            position=cell.position,
            attempt=attempt,
        )


def new_ab_id() -> str:
    """Name an A/B so that names sort by time."""
    return f"ab-{new_run_id()}"


def lock_path(state: Path, name: str) -> Path:
    """Name the file whose lock is held by who carries out an A/B."""
    return state / "ab" / f"{name}.lock"


def check_pairs(pairs: int) -> None:
    """Refuse a number of pairs that cannot be balanced, or from which nothing can follow. Raises UsageError."""
    if pairs % 2:
        hint = f"--pairs {pairs + 1}: as many pairs begin with A, or have it on the first card, as with B"
        raise UsageError(f"--pairs {pairs} is odd", hint=hint, reason="odd_pairs")
    if pairs < FEWEST_PAIRS:
        hint = f"at least {FEWEST_PAIRS}; how many show an effect of 2 %: ttx ab power --effect 2%"
        raise UsageError(f"{pairs} pairs cannot tell a difference from noise", hint=hint, reason="few_pairs")


def choose_mode(a: Asked, b: Asked, cards: Sequence[Card], *, one_at_a_time: bool) -> tuple[Mode, tuple[str, ...]]:
    """Say how two arms run on the cards of a host, and on which: both at once where each takes one of two cards.

    Cards that an arm names come first. Raises NoSuchCardError, and UsageError when they name more than there is a
    place for.
    """
    counts = (a.arm.cards.count, b.arm.cards.count)
    named = [name for asked in (a, b) for name in want(asked.arm.cards.count, asked.arm.cards.ids, cards).ids]
    pool = list(dict.fromkeys([*named, *(card.id for card in cards)]))
    swap = counts == (1, 1) and len(cards) > 1 and not one_at_a_time
    wanted = 2 if swap else max(counts)
    if len(set(named)) > wanted:
        hint = "both run on the same cards, in turns: let them name the same ones, or none"
        raise UsageError(f"the arms name {len(set(named))} cards, and this A/B has a place for {wanted}", hint=hint)
    chosen = set(pool[:wanted])
    return "swap" if swap else "turns", tuple(card.id for card in cards if card.id in chosen)


def beside(a: Asked, b: Asked) -> Asked:
    """Give B as it can run beside A at once: with a port of its own, and a name of its own when both have one.

    An A/A needs both. Neither changes what is served, and the records say so.
    """
    arm: Arm = b.arm
    if arm.engine.port == a.arm.engine.port:
        arm = replace(arm, engine=replace(arm.engine, port=a.arm.engine.port + 1))
    if arm.name == a.arm.name:
        arm = replace(arm, name=f"{arm.name}-b")
    return replace(b, arm=arm)
