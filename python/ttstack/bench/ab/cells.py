"""The runs of an A/B as its cells: which attempt of a pair counts, and which of its runs do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ttstack.bench.ab.metrics import metrics_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.records.context import AbPlace
    from ttstack.records.log import RunRecord

_CUT_SHORT = {"interrupted", "aborted"}


@dataclass(frozen=True, slots=True)
class AbCell:
    """One run of an A/B, and whether it counts; ``against`` says why not."""

    record: RunRecord
    place: AbPlace
    cards: tuple[str, ...]  # ids of the slots that it had
    values: Mapping[str, float]  # metric -> this boot's value
    outputs: Mapping[str, str]
    against: tuple[str, ...]
    lacks_metric: bool = False  # all is well but for that

    @property
    def cut_short(self) -> bool:
        """Whether it was stopped, or is not over: its pair is to be measured again."""
        return self.record.outcome in _CUT_SHORT

    @property
    def running(self) -> bool:
        """Whether it is not over."""
        return self.record.outcome == "running"


@dataclass(frozen=True, slots=True)
class AbPair:
    """The attempt of a pair that counts, or the last one. ``others``: runs of further attempts, which never count."""

    number: int
    cells: Mapping[Literal["A", "B"], AbCell]
    others: tuple[AbCell, ...]
    against: tuple[str, ...] = ()  # why the two may not be held against each other, though each is good

    @property
    def done(self) -> bool:
        """Whether its runs came to an end of their own, good or bad. After a bad one the other need not be made."""
        cells = self.cells.values()
        if not cells or any(cell.cut_short or cell.running for cell in cells):
            return False
        return len(cells) == len("AB") or any(cell.against for cell in cells)

    @property
    def both(self) -> tuple[AbCell, AbCell] | None:
        """A and B, when both count."""
        if (
            self.against
            or len(self.cells) != len("AB")
            or any(cell.against or cell.running for cell in self.cells.values())
        ):
            return None
        return self.cells["A"], self.cells["B"]


def place_of(run: RunRecord) -> AbPlace:
    """Return the place of a run in its A/B. Raises ValueError for a run of none."""
    place = run.opened.ab
    if place is None:
        raise ValueError(f"run {run.id} is part of no A/B")
    return place


def cell_of(run: RunRecord, metric: str) -> AbCell:
    """Read what a run says; it counts when its numbers may be quoted and the metric is among them."""
    closed = run.closed
    measured = closed.measured if closed else None
    observed = closed.observed if closed else None
    values = metrics_of(measured) if measured else {}
    against = list(run.not_quotable)
    if closed is not None and closed.outcome != "ok":
        against = [": ".join(filter(None, (closed.outcome, closed.text)))]  # what went wrong says more than its result
    lacks_metric = not against and metric not in values
    if lacks_metric:
        against = [f"it has no usable {metric}; it has: {', '.join(values) or 'nothing'}"]
    return AbCell(
        run,
        place_of(run),
        tuple(card.id for card in observed.cards) if observed else (),
        values,
        measured.outputs if measured else {},
        tuple(against),
        lacks_metric,
    )


def pairs_of(cells: Sequence[AbCell]) -> tuple[AbPair, ...]:
    """Sort the cells of one A/B, in the order of their opening, into its pairs.

    The first attempt of a pair whose runs both came to an end counts, whatever that end was: nobody may measure again
    until the numbers please. One that was interrupted is measured again, both of its runs, as near to each other as
    they were planned.
    """
    attempts: dict[int, dict[int, dict[Literal["A", "B"], AbCell]]] = {}
    twice: dict[int, list[AbCell]] = {}
    for cell in cells:
        attempt = attempts.setdefault(cell.place.pair, {}).setdefault(cell.place.attempt, {})
        if attempt.setdefault(cell.place.side, cell) is not cell:
            twice.setdefault(cell.place.pair, []).append(cell)
    found = []
    for number in sorted(attempts):
        tries = [AbPair(number, sides, ()) for _, sides in sorted(attempts[number].items())]
        at = next((at for at, each in enumerate(tries) if each.done), len(tries) - 1)
        others = [cell for each in (*tries[:at], *tries[at + 1 :]) for cell in each.cells.values()]
        found.append(AbPair(number, tries[at].cells, (*others, *twice.get(number, ()))))
    return tuple(found)
