"""What a report says, as data. Every text in it is printable; every number knows whether it may be quoted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.records.types import Json

AbVerdict = Literal["better", "worse", "no difference detected", "insufficient", "invalid", ""]
"""Of B against A; "" of a metric that was not the planned one, and so has none."""


@dataclass(frozen=True, slots=True)
class Source:
    """Who has made numbers: runs that asked for the same, on one host. ``against``: why they may not be quoted."""

    label: str  # unique in a report; says when it is simulated
    arm: str
    suite: str
    simulated: bool
    against: tuple[str, ...]
    boots: int  # runs that the numbers are of
    left_out: int  # further runs that asked for the same, and may not be quoted while these may
    first: str  # when the first of these runs was opened, and the last
    last: str

    @property
    def quotable(self) -> bool:
        """Whether the numbers may be quoted."""
        return not self.against


@dataclass(frozen=True, slots=True)
class Spread:
    """A value over all boots. With one boot: of its samples; with several: of the boots' medians, nothing else.

    Samples of one boot share its cache and its card, so those of several boots are never thrown together.
    """

    median: float
    low: float
    high: float
    n: int  # samples, of all boots
    boots: int


@dataclass(frozen=True, slots=True)
class CellRow:
    """One cell of a source; ``name`` is "" for what belongs to the suite as a whole."""

    name: str
    shape: Mapping[str, Json]
    values: Mapping[str, Spread]
    server: Mapping[str, Spread]  # by the server's own clock

    @property
    def n(self) -> int:
        """How many samples the value with the most of them has."""
        return max((spread.n for spread in (*self.values.values(), *self.server.values())), default=0)


@dataclass(frozen=True, slots=True)
class Results:
    """All numbers of a source."""

    source: Source
    rows: tuple[CellRow, ...]

    @property
    def cells(self) -> tuple[CellRow, ...]:
        """The rows of cells."""
        return tuple(row for row in self.rows if row.name)

    @property
    def whole(self) -> CellRow | None:
        """The row of the suite as a whole."""
        return next((row for row in self.rows if not row.name), None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the values that any cell has."""
        return tuple(dict.fromkeys(name for row in self.cells for name in row.values))

    @property
    def server_columns(self) -> tuple[str, ...]:
        """The same, of the server's own times."""
        return tuple(dict.fromkeys(name for row in self.cells for name in row.server))


@dataclass(frozen=True, slots=True)
class Curve:
    """One value of a source over one part of the shape: (x, spread), x ascending."""

    source: Source
    points: tuple[tuple[float, Spread], ...]

    def at(self, x: float) -> Spread | None:
        """Give the value at a place."""
        return dict(self.points).get(x)


@dataclass(frozen=True, slots=True)
class Figure:
    """Curves that can be compared: never simulated ones with others. ``value`` ends in its unit."""

    value: str
    simulated: bool
    over: Literal["prompt_tokens", "concurrency"]
    shape: str  # what the curves have in common, in words
    curves: tuple[Curve, ...]

    @property
    def places(self) -> tuple[float, ...]:
        """Every x, ascending."""
        return tuple(sorted({x for curve in self.curves for x, _ in curve.points}))


@dataclass(frozen=True, slots=True)
class AbRow:
    """One metric of an A/B: B against A. ``share``: 0.03 is 3 % more; None: there is none to be told."""

    id: str
    label: str
    metric: str
    arms: tuple[str, str]
    share: float | None
    low: float | None  # of the interval at 95 %
    high: float | None
    verdict: AbVerdict
    pairs: int  # that count
    simulated: bool
    reasons: tuple[str, ...] = ()  # why there is no verdict, or none that may be used

    @property
    def drawn(self) -> bool:
        """Whether it has a place in a forest plot."""
        return self.share is not None and self.low is not None and self.high is not None


@dataclass(frozen=True, slots=True)
class Boot:
    """How long each phase of a run took, seconds, in their order."""

    run: str
    time: str
    arm: str
    simulated: bool
    outcome: str
    cache: str  # hit, seed, cold, or "" where that was not seen
    phases: tuple[tuple[str, float], ...]

    @property
    def seconds(self) -> float:
        """All phases together."""
        return sum(seconds for _, seconds in self.phases)

    def of(self, phase: str) -> float | None:
        """Give how long a phase took; None when it was not begun."""
        found = [seconds for name, seconds in self.phases if name == phase]
        return sum(found) if found else None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One run's value: the median of its samples."""

    run: str
    time: str
    value: float
    against: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What was asked, or met, otherwise from this run on."""

    run: str
    time: str
    kinds: tuple[str, ...]  # pin, overlay, arm, model, ...
    text: str


@dataclass(frozen=True, slots=True)
class Trend:
    """One value of an arm, from run to run. ``left_out``: older runs that are not shown."""

    arm: str
    suite: str
    simulated: bool
    cell: str
    value: str
    points: tuple[TrendPoint, ...]
    changes: tuple[Change, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Told:
    """One run in a list, with what there is to say of it: why it was refused, why it may not be quoted."""

    run: str
    time: str
    verb: str
    arm: str
    simulated: bool
    outcome: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VoidCell:
    """A cell of which nothing may be used. ``voids``: code of the reason -> requests."""

    run: str
    time: str
    arm: str
    simulated: bool
    suite: str
    cell: str
    reasons: tuple[str, ...]
    voids: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many runs, and how they ended."""

    runs: int
    measured: int
    quotable: int
    simulated: int
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report says. Lists of runs are newest first, and may be longer than what is shown."""

    title: str
    made: str
    files: tuple[str, ...]
    hosts: tuple[str, ...]
    first: str
    last: str
    counts: Counts
    faults: int  # lines of the files that are no records
    results: tuple[Results, ...] = ()
    results_left_out: int = 0  # further sources, older
    sweeps: tuple[Figure, ...] = ()
    loads: tuple[Figure, ...] = ()
    ab: tuple[AbRow, ...] = ()
    boots: tuple[Boot, ...] = ()
    trends: tuple[Trend, ...] = ()
    void_cells: tuple[VoidCell, ...] = ()
    stopped: tuple[Told, ...] = ()  # refused, failed, interrupted, aborted
    not_quotable: tuple[Told, ...] = ()  # measured, and may not be quoted
    notes: tuple[str, ...] = field(default=())
