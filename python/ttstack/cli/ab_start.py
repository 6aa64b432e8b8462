"""From the command line, or from records, to the plan of an A/B, and through it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ttstack.bench.ab.metrics import primary
from ttstack.cli.ab_board import ab_board
from ttstack.cli.arms import asked_for, shelf_of
from ttstack.cli.hosts import places_for
from ttstack.errors import UsageError
from ttstack.host.cards import inventory
from ttstack.host.places import state_folder
from ttstack.render.build import engine_argv
from ttstack.run.ab.conduct import conduct, find
from ttstack.run.ab.plan import AbPlan, beside, check_pairs, choose_mode, new_ab_id
from ttstack.run.errors import InterruptedRunError, RunRefusedError
from ttstack.run.link import python_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ttstack.arm.types import Asked
    from ttstack.bench.ab.design import Mode
    from ttstack.bench.ab.verdict import Report
    from ttstack.cli.command import Context
    from ttstack.host.types import Card
    from ttstack.records.types import Json


def fresh_plan(context: Context, args: argparse.Namespace, settings: Mapping[str, Json]) -> AbPlan:
    """Plan a new A/B. Raises TtxError: nothing is begun then."""
    if args.a is None or args.b is None:
        raise UsageError("an A/B has two arms", hint="such as: ttx ab prod ./mine.toml --pairs 8")
    if args.pairs is None:
        hint = "how many show an effect of 2 %: ttx ab power --effect 2%"
        raise UsageError("--pairs is needed: their number is fixed before the first one", hint=hint)
    check_pairs(args.pairs)
    a, b = (asked_for(context, name) for name in (args.a, args.b))
    cards = _cards(a, b)
    mode, chosen = choose_mode(a, b, cards, one_at_a_time=args.one_at_a_time)
    return AbPlan(
        id=new_ab_id(),
        a=a,
        b=_beside(a, b, mode),
        mode=mode,
        pairs=args.pairs,
        cards=chosen,
        suite=args.suite,
        settings=settings,
        metric=primary(args.suite, args.metric),
        other_outputs=args.allow_other_outputs,
    )


def resumed_plan(context: Context, args: argparse.Namespace) -> AbPlan:
    """Plan the rest of an A/B as it was begun. Raises TtxError."""
    if args.pairs is not None or args.metric is not None:
        hint = "leave --pairs and --metric out; a new A/B may have others"
        raise UsageError("an A/B goes on as it was planned", hint=hint, reason="plan_fixed")
    report = find(state_folder(os.environ), args.resume)
    if report is None:
        raise UsageError(f"there is no A/B {args.resume!r}", hint="see: ttx ab ls", reason="no_ab")
    if report.verdict == "invalid":
        raise RunRefusedError(
            f"{report.id} is invalid: {report.reasons[0]}",
            hint=f"no further pair can mend that; see: ttx ab show {report.id}",
            reason="ab_invalid",
        )
    if report.finished:
        hint = f"see: ttx ab show {report.id}; more pairs are another A/B, which stands for itself"
        raise RunRefusedError(f"{report.id} is finished: none can be added to its pairs", hint=hint, reason="finished")
    a, b = _arms_of(context, args, report)
    cards = _cards(a, b)
    mode, chosen = choose_mode(a, b, cards, one_at_a_time=report.mode == "turns")
    had = {card for cell in report.cells for card in cell.record.opened.asked.cards}
    if mode != report.mode or not had <= set(chosen):
        raise RunRefusedError(
            f"{report.id} was begun on cards {', '.join(sorted(had))}, and would go on on {', '.join(chosen)}",
            hint="an A/B has one pair of cards from its first run to its last; see: ttx card ls",
            reason="cards_changed",
        )
    place, asked = report.place, report.cells[0].record.opened.asked
    return AbPlan(
        id=report.id,
        a=a,
        b=_beside(a, b, mode),
        mode=mode,
        pairs=place.pairs,
        cards=chosen,
        suite=asked.suite,
        settings=asked.settings,
        metric=place.metric,
        other_outputs=place.other_outputs,
    )


def carry_out(context: Context, plan: AbPlan, wait_s: float) -> Report:
    """Measure what is left of a plan, showing how it goes. Raises TtxError."""
    command = (sys.executable, "-m", "ttstack.cli.ab_cell", str(shelf_of(context).arms))
    title = f"ttx ab {plan.a.arm.name} (A) against {plan.b.arm.name} (B), {plan.suite}, {plan.metric}"
    environ = {**os.environ, "PYTHONPATH": python_path()}

    def now() -> tuple[Asked, Asked]:
        a, b = (asked_for(context, str(each.arm.file)) for each in (plan.a, plan.b))
        return a, _beside(a, b, plan.mode)

    places = places_for(os.environ, simulated=plan.simulated)
    try:
        with ab_board(title, plan.pairs) as reporter:
            return conduct(plan, places, command, reporter, environ=environ, wait_s=wait_s, now=now)
    except InterruptedRunError as error:
        if find(places.state, plan.id) is not None:
            error.hint = f"go on with: ttx ab --resume {plan.id}"
        raise


def _arms_of(context: Context, args: argparse.Namespace, report: Report) -> tuple[Asked, Asked]:
    """Find the arms of an A/B: those that are named now, else the files that its runs name."""
    files: dict[str, str] = {}
    for cell in report.cells:
        files.setdefault(cell.place.side, str(cell.record.opened.asked.arm["file"]))
    named = {"A": args.a, "B": args.b}
    for side in ("A", "B"):
        if not named[side] and side not in files:
            hint = f"name both: ttx ab A B --resume {report.id}"
            raise UsageError(f"{report.id} has no run of arm {side} yet, so its file is not known", hint=hint)
    a, b = (asked_for(context, named[side] or files[side]) for side in ("A", "B"))
    return a, b


def _cards(a: Asked, b: Asked) -> Sequence[Card]:
    """List the cards of the host that both are for, once both can be rendered."""
    simulated = {asked.arm.engine.kind == "sim" for asked in (a, b)}
    if len(simulated) > 1:
        raise UsageError("one of the arms is simulated and the other is not", hint="no card is shared by the two")
    for asked in (a, b):
        engine_argv(asked, ("engine",) if asked.arm.engine.kind == "sim" else None)
    places = places_for(os.environ, simulated=simulated == {True})
    return inventory(places.roots)


def _beside(a: Asked, b: Asked, mode: Mode) -> Asked:
    return beside(a, b) if mode == "swap" else b
