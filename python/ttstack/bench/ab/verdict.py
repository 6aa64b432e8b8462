"""What an A/B comes to, from the records of its runs alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Literal

from ttstack.bench.ab.cells import cell_of, pairs_of, place_of
from ttstack.bench.ab.effect import Effects, Pair, drift, effects
from ttstack.bench.ab.metrics import better
from ttstack.bench.ab.outputs import Outputs, compare_outputs
from ttstack.bench.ab.sameness import Difference, asked_difference, declared, is_one_arm, undeclared
from ttstack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ttstack.bench.ab.cells import AbCell, AbPair
    from ttstack.bench.ab.design import Mode
    from ttstack.bench.ab.effect import Side
    from ttstack.bench.ab.metrics import Better
    from ttstack.records.context import AbPlace
    from ttstack.records.log import RunRecord
    from ttstack.records.types import CardSeen

Verdict = Literal["better", "worse", "no difference detected", "insufficient", "invalid"]
"""Of B against A. ``insufficient``: too little was measured; ``invalid``: what was measured may not be compared."""

MOST_MISSING = 0.25
"""Share of the planned pairs that may come to nothing. With more, what is left is no longer the plan: what fails may
well fail because of the arm."""


@dataclass(frozen=True, slots=True)
class MetricFound:
    """One metric over the counted pairs that have it."""

    name: str
    better: Better | None
    a: float  # median of the boots' values, in the metric's unit
    b: float
    drift: float  # of both arms from pair to pair, as a share
    effects: Effects


@dataclass(frozen=True, slots=True)
class Report:
    """All that an A/B comes to.

    The first of ``metrics`` has the verdict. There are none before it is finished, as who looks in between and stops
    when he likes the numbers finds differences that are not there; and none when they may not be compared.
    """

    id: str
    verdict: Verdict
    reasons: tuple[str, ...]  # why it is insufficient or invalid
    notes: tuple[str, ...]
    place: AbPlace  # of its first run: the plan
    suite: str
    mode: Mode
    arms: tuple[str, str]
    one_arm: bool  # A/A
    declared: tuple[Difference, ...]
    finished: bool
    pairs: tuple[AbPair, ...]
    counted: int
    metrics: tuple[MetricFound, ...]
    outputs: Outputs

    @property
    def cells(self) -> tuple[AbCell, ...]:
        """Every run that was ever opened for it, in the order of their opening."""
        every = [cell for pair in self.pairs for cell in (*pair.others, *pair.cells.values())]
        return tuple(sorted(every, key=lambda cell: (cell.record.opened.time, cell.record.id)))

    @property
    def missing(self) -> int:
        """How many pairs came to an end and do not count."""
        return sum(pair.done and pair.both is None for pair in self.pairs)

    @property
    def exit_code(self) -> Exit:
        """0 with a verdict; else identity before refused before not quotable, as the runs that do not count have it."""
        if self.verdict in {"better", "worse", "no difference detected"}:
            return Exit.DONE
        codes = {cell.record.closed.exit_code for cell in self.cells if cell.record.closed}
        first = next((code for code in (Exit.IDENTITY, Exit.REFUSED) if code in codes), Exit.NOT_QUOTABLE)
        return Exit.NOT_QUOTABLE if self.verdict == "invalid" else first


def judge(runs: Sequence[RunRecord]) -> Report:
    """Compute an A/B from its runs, in the order of their opening. Raises ValueError when there are none."""
    if not runs:
        raise ValueError("an A/B has at least one run")
    place = place_of(runs[0])
    pairs = tuple(map(_by_one_program, pairs_of([cell_of(run, place.metric) for run in runs])))
    counted = [(pair, found) for pair in pairs if (found := pair.both) is not None]
    both = [found for _, found in counted]
    firsts = {side: next((run for run in runs if place_of(run).side == side), None) for side in ("A", "B")}
    one, two = firsts["A"], firsts["B"]
    outputs = compare_outputs([(pair.number, a.outputs, b.outputs) for pair, (a, b) in counted])
    finished = is_finished(place, pairs)
    one_arm = one is not None and two is not None and is_one_arm(one, two)
    against = [*_drift(runs, firsts.values()), *_unlike(both), *(_outputs(place, outputs) if both else ())]
    metrics = _metrics(place, both) if finished and not against else ()
    lacking = [] if against else _lacking(place, pairs, metrics, finished=finished)
    verdict: Verdict = "invalid" if against else "insufficient" if lacking else _verdict(metrics[0])
    return Report(
        id=place.id,
        verdict=verdict,
        reasons=(*against, *lacking),
        notes=_notes(runs, outputs, verdict, one_arm=one_arm),
        place=place,
        suite=runs[0].opened.asked.suite,
        mode="turns" if place.order else "swap",
        arms=(one.opened.arm if one else "", two.opened.arm if two else ""),
        one_arm=one_arm,
        declared=declared(one, two) if one and two else (),
        finished=finished,
        pairs=pairs,
        counted=len(counted),
        metrics=metrics,
        outputs=outputs,
    )


def _by_one_program(pair: AbPair) -> AbPair:
    """Let a pair not count whose runs were made by two versions of ttx: they were not measured in one way."""
    if pair.both is None:
        return pair
    keys = [each.key for each in undeclared(*(cell.record for cell in pair.both)) if each.key.startswith("tool.")]
    return replace(pair, against=(f"ttx changed between its runs: {', '.join(keys)}",)) if keys else pair


def is_finished(place: AbPlace, pairs: Sequence[AbPair]) -> bool:
    """Whether nothing is left to measure: all pairs came to an end, or so many to nothing that the rest is no use."""
    if any(cell.running for pair in pairs for cell in pair.cells.values()):
        return False
    return sum(pair.done for pair in pairs) >= place.pairs or _too_many_missing(place, pairs) or _no_metric(pairs)


def _no_metric(pairs: Sequence[AbPair]) -> bool:
    """Whether a run that went well has no such metric: neither will the others."""
    return any(cell.lacks_metric for pair in pairs for cell in pair.cells.values())


def _too_many_missing(place: AbPlace, pairs: Sequence[AbPair]) -> bool:
    return sum(pair.done and pair.both is None for pair in pairs) > place.pairs * MOST_MISSING


def _drift(runs: Sequence[RunRecord], firsts: Iterable[RunRecord | None]) -> list[str]:
    """Say which run asked for something else than the first one of its side."""
    found = []
    first_of = {place_of(first).side: first for first in firsts if first is not None}
    plan = {(place.pairs, place.metric, place.other_outputs, bool(place.order)) for place in map(place_of, runs)}
    if len(plan) > 1:
        found.append("its runs do not have one plan")
    for run in runs:
        side = place_of(run).side
        keys = [each.key for each in asked_difference(first_of[side], run)]
        if keys:
            found.append(f"run {run.id} of arm {side} asked for something else than its first run: {', '.join(keys)}")
    return found


def _unlike(both: Sequence[tuple[AbCell, AbCell]]) -> list[str]:
    """Say which pairs were not made in one way, or not on the cards that they were planned for."""
    found = []
    cards = {card for pair in both for cell in pair for card in cell.cards}
    for a, b in both:
        pair = a.place.pair
        keys = [each.key for each in undeclared(a.record, b.record)]
        if keys:
            found.append(f"the runs of pair {pair} differ in what no arm declares: {', '.join(keys)}")
        apart = not a.place.order
        if apart and (len(a.cards) != 1 or len(b.cards) != 1 or a.cards == b.cards):
            found.append(f"the runs of pair {pair} did not have one card each")
        if not apart and not (set(a.cards) <= set(b.cards) or set(b.cards) <= set(a.cards)):
            found.append(f"the runs of pair {pair} did not have the same cards")
        if set(a.record.opened.asked.cards) != set(a.cards) or set(b.record.opened.asked.cards) != set(b.cards):
            found.append(f"a run of pair {pair} had other cards than it asked for")
    if both and not both[0][0].place.order and len(cards) != len("AB"):
        found.append(f"its runs had {len(cards)} cards, and change places on 2")
    return found


def _outputs(place: AbPlace, outputs: Outputs) -> list[str]:
    """Say why no speeds may be compared: faster and wrong is no improvement."""
    if place.other_outputs or outputs.equal:
        return []
    if not outputs.compared:
        return ["the suite recorded no answers, so nothing shows that both arms answer the same"]
    unsteady = "" if outputs.steady_a else "; A's own answers differ from boot to boot"
    return [f"{len(outputs.others)} of {outputs.compared} answers of B are not those of A{unsteady}"]


def _lacking(place: AbPlace, pairs: Sequence[AbPair], metrics: Sequence[MetricFound], *, finished: bool) -> list[str]:
    """Say what is missing for a verdict."""
    done = sum(pair.done for pair in pairs)
    if not finished:
        return [f"{done} of {place.pairs} pairs are measured; nothing is told before the last one"]
    missing = sum(pair.done and pair.both is None for pair in pairs)
    found = []
    if _too_many_missing(place, pairs):
        most = int(place.pairs * MOST_MISSING)
        found.append(f"{missing} of {place.pairs} pairs do not count, and no more than {most} may be missing")
    lacking = [cell for pair in pairs for cell in pair.cells.values() if cell.lacks_metric]
    if lacking:
        return [*found, f"run {lacking[0].record.id}: {lacking[0].against[0]}"]
    if not metrics:
        return found or [f"no pair has a usable {place.metric}"]
    seen = metrics[0].effects
    if seen.df < 1:
        found.append(f"{seen.n} pairs are too few to tell a difference from noise")
    if seen.mixed:
        found.append(f"a difference of the arms cannot be told from one of the {' or the '.join(seen.mixed)}")
    return found


def _metrics(place: AbPlace, both: Sequence[tuple[AbCell, AbCell]]) -> tuple[MetricFound, ...]:
    """Estimate the effects on every metric that all counted pairs have, the one with the verdict first."""
    if not both:
        return ()
    names = set.intersection(*({*a.values} & {*b.values} for a, b in both))
    ordered = [place.metric, *sorted(names - {place.metric})]
    bdf = {card.id: card.bdf for pair in both for cell in pair for card in _seen(cell)}
    cards = sorted({card for pair in both for cell in pair for card in cell.cards}, key=lambda card: bdf[card])
    return tuple(_metric(name, both, cards) for name in ordered)


def _seen(cell: AbCell) -> tuple[CardSeen, ...]:
    closed = cell.record.closed
    return closed.observed.cards if closed and closed.observed else ()


def _metric(name: str, both: Sequence[tuple[AbCell, AbCell]], cards: Sequence[str]) -> MetricFound:
    made = [_pair(name, a, b, cards) for a, b in both]
    return MetricFound(
        name,
        better(name),
        median(a.values[name] for a, _ in both),
        median(b.values[name] for _, b in both),
        drift(made, [a.place.pair for a, _ in both]),
        effects(made),
    )


def _pair(name: str, a: AbCell, b: AbCell, cards: Sequence[str]) -> Pair:
    card: Side = ""
    if not a.place.order:
        card = "first" if a.cards[:1] == tuple(cards[:1]) else "second"
    return Pair(a.values[name], b.values[name], card, a.place.order)


def _verdict(primary: MetricFound) -> Verdict:
    treatment = primary.effects.treatment
    if not treatment.told:
        return "no difference detected"
    less = treatment.share < 0
    return "better" if less == (primary.better == "lower") else "worse"


def _notes(runs: Sequence[RunRecord], outputs: Outputs, verdict: Verdict, *, one_arm: bool) -> tuple[str, ...]:
    """Say what a reader should know beside the verdict."""
    found = []
    if runs[0].opened.simulated:
        found.append("simulated: no card was involved")
    if one_arm and verdict in {"better", "worse"}:
        found.append(
            "A and B are one arm: one A/A in twenty says so by chance, and else something differs that is not the arms"
        )
    if outputs.compared and not outputs.equal:
        found.append(
            f"of {outputs.compared} answers {outputs.same} are the same; they agree up to {outputs.agreement:.1%} of"
            " their length on average"
        )
    tools = {str(run.raw_open["tool"]) for run in runs}
    if len(tools) > 1:
        found.append(f"it was measured by {len(tools)} versions of ttx; both runs of a pair by one")
    states = [(run, run.opened.host.state) for run in runs]
    busy = [run.id for run, state in states if state and state.load[:1] > (float(run.opened.host.cpu_count),)]
    if busy:
        found.append(f"the host was busy when {len(busy)} of {len(runs)} runs began: more load than processors")
    if len({run.opened.host.boot_id for run in runs}) > 1:
        found.append("the host was booted anew in between")
    seen = [(run.id, run.closed.observed) for run in runs if run.closed and run.closed.observed]
    cold = [name for name, observed in seen if observed.cache not in {"hit", None}]
    if cold:
        found.append(f"{len(cold)} runs built their tensor cache first: {', '.join(cold)}")
    return tuple(found)
