"""``ttx ab``: measure two arms against each other, and say what may be said."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.cli.starting import add_wait, wait_s
from ttstack.cli.streams import told
from ttstack.cli.suites import add_suite, settings_of
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.bench.ab.design import Mode
    from ttstack.bench.ab.floor import Floor
    from ttstack.bench.ab.verdict import Report
    from ttstack.cli.command import Context
    from ttstack.records.log import RunRecord
    from ttstack.run.ab.plan import AbPlan

EXAMPLES = """\
  ttx ab tp1-a tp1-b --pairs 8               B against A, on the smoke suite
  ttx ab prod ./mine.toml --pairs 12 --suite infbench --metric b1/tg_ms_per_token
  ttx ab show                                the newest one
"""
DEFAULT = "run"  # `ttx ab A B` is `ttx ab run A B`
_RUN = """\
  ttx ab sim sim --pairs 4                   an A/A: how much two boots of one arm differ here
  ttx ab tp1-a tp1-b --pairs 8 --one-at-a-time
  ttx ab --resume ab-20260131T235959-4f2a9c
"""
_SHOW = "  ttx ab show\n  ttx ab show ab-20260131T235959-4f2a9c --json\n"
_POWER = "  ttx ab power --effect 2%\n  ttx ab power --effect 0.5% --noise 1%\n"
_COLUMNS = ("A/B", "WHEN", "A", "B", "SUITE", "METRIC", "PAIRS", "VERDICT")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = leaf(
        commands, "run", "measure two arms in pairs, and say whether they differ; `run` may be left out", _RUN, _run
    )
    run.add_argument("a", metavar="A", nargs="?", help="the arm that is held against")
    run.add_argument("b", metavar="B", nargs="?", help="the arm that is judged; A once more for the noise of this host")
    run.add_argument("--pairs", type=int, metavar="N", help="how many times each is booted and measured; even")
    add_suite(run)
    run.add_argument("--metric", metavar="METRIC", help="what has the verdict: NAME, or CELL/NAME (default: by suite)")
    run.add_argument("--one-at-a-time", action="store_true", help="never both at once, even where there are two cards")
    run.add_argument(
        "--allow-other-outputs", action="store_true", help="compare speeds of arms that answer differently, too"
    )
    run.add_argument("--resume", metavar="ID", help="go on with one that was interrupted, as it was planned")
    add_wait(run)
    show = leaf(commands, "show", "compute an A/B again from its records", _SHOW, _show)
    show.add_argument("id", metavar="ID", nargs="?", default="last", help="its id; the newest when none is given")
    power = leaf(commands, "power", "say how many pairs show an effect of a size", _POWER, _power)
    power.add_argument("--effect", type=_share, required=True, metavar="SHARE", help="the smallest that matters: 2%%")
    power.add_argument(
        "--noise", type=_share, metavar="SHARE", help="of a pair's difference (default: from an A/A here)"
    )
    power.add_argument("--suite", default="smoke", metavar="SUITE", help="of the A/A (smoke)")
    power.add_argument("--metric", metavar="METRIC", help="of the A/A (default: by suite)")
    power.add_argument("--one-at-a-time", action="store_true", help="from an A/A that was not run both at once")
    power.add_argument("--simulated", action="store_true", help="from an A/A on simulated cards")
    ls = leaf(commands, "ls", "list A/Bs, the newest last", "  ttx ab ls\n  ttx ab ls --json\n", _ls)
    for command in (run, show, power, ls):
        add_json(command)


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, such as 2% or 0.02") from None
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 100 %")
    return value


def _run(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.ab_start import carry_out, fresh_plan, resumed_plan  # noqa: PLC0415 - help need not wait for it

    patience = wait_s(args)
    plan = resumed_plan(context, args) if args.resume else fresh_plan(context, args, settings_of(args))
    _foretell(plan)
    report = carry_out(context, plan, patience)
    return _tell(report, as_json=args.json)


def _foretell(plan: AbPlan) -> None:
    """Say what is planned, and what it can show, before anything is measured."""
    from ttstack.bench.ab.power import POWER, detectable  # noqa: PLC0415 - help need not wait for it
    from ttstack.cli.ab_text import kind_of, percent  # noqa: PLC0415

    note(f"{plan.id}: {plan.pairs} pairs, {kind_of(plan.mode)}; cards {', '.join(plan.cards)}")
    note("this number is fixed now: no value is shown before the last pair, and none can be added to them")
    floor = _floor(plan.suite, plan.metric, plan.mode, arm=plan.a.arm.name, simulated=plan.simulated)
    again = f"ttx ab {plan.a.arm.name} {plan.a.arm.name} --pairs {plan.pairs}"
    if floor is None:
        if not plan.one_arm:
            note(f"no A/A of this kind is known here, so nobody knows what so many pairs can show: {again}")
        return
    seen = detectable(floor.noise, plan.pairs, 2)
    note(f"noise here is {percent(floor.noise).lstrip('+')} from pair to pair ({_source(floor)})")
    note(f"so {plan.pairs} pairs show a difference of {percent(seen).lstrip('+')} or more in {POWER:.0%} of cases")


def _source(floor: Floor) -> str:
    from ttstack.cli.human import ago  # noqa: PLC0415 - help need not wait for it

    return f"A/A {floor.id} of {floor.arm}, {floor.pairs} pairs, {ago(floor.age_s())}"


def _floor(suite: str, metric: str, mode: Mode, *, arm: str, simulated: bool) -> Floor | None:
    import platform  # noqa: PLC0415 - help need not wait for it

    from ttstack.bench.ab.floor import Wanted, find_floor  # noqa: PLC0415

    return find_floor(_runs(), Wanted(platform.node(), simulated, suite, metric, mode, arm))


def _runs() -> Sequence[RunRecord]:
    from ttstack.host.places import state_folder  # noqa: PLC0415 - help need not wait for it
    from ttstack.run.ab.conduct import lives  # noqa: PLC0415
    from ttstack.run.journal import store_of  # noqa: PLC0415

    return store_of(state_folder(os.environ)).read(lives).runs


def _tell(report: Report, *, as_json: bool) -> int:
    from ttstack.cli.ab_text import print_report, report_json  # noqa: PLC0415 - help need not wait for it

    with told():
        if as_json:
            print_json(report_json(report))
        else:
            print_report(report)
    return report.exit_code


def _show(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.bench.ab.verdict import judge  # noqa: PLC0415 - help need not wait for it

    known = _known()
    return _tell(judge(known[pick(args.id, known)]), as_json=args.json)


def _known() -> Mapping[str, Sequence[RunRecord]]:
    from ttstack.bench.ab.floor import ab_runs  # noqa: PLC0415 - help need not wait for it

    return ab_runs(_runs())


def pick(name: str, known: Mapping[str, object]) -> str:
    """Find an A/B by its id, the start of it, or ``last``. Raises UsageError."""
    if not known:
        raise UsageError("there is no A/B here", hint="make one: ttx ab A B --pairs 8", reason="no_ab")
    found = [*known][-1:] if name == "last" else [each for each in known if each == name]
    found = found or [each for each in known if each.startswith(name)]
    if len(found) != 1:
        what = f"{len(found)} A/Bs begin with {name!r}" if found else f"there is no A/B {name!r}"
        raise UsageError(what, hint="see: ttx ab ls", reason="no_ab")
    return found[0]


def _power(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.bench.ab.effect import LEVEL  # noqa: PLC0415 - help need not wait for it
    from ttstack.bench.ab.metrics import primary  # noqa: PLC0415
    from ttstack.bench.ab.power import MOST_PAIRS, POWER, pairs_for  # noqa: PLC0415
    from ttstack.cli.ab_text import percent  # noqa: PLC0415

    floor, noise = None, args.noise
    if noise is None:
        metric = primary(args.suite, args.metric)
        mode: Mode = "turns" if args.one_at_a_time else "swap"
        floor = _floor(args.suite, metric, mode, arm="", simulated=args.simulated)
        if floor is None:
            hint = "make one: ttx ab A A --pairs 8, or say how much with --noise 1%"
            raise UsageError(
                "no A/A of this kind is known here, so the noise is not known", hint=hint, reason="no_floor"
            )
        noise = floor.noise
    pairs = pairs_for(args.effect, noise, 2)
    with told():
        if args.json:
            source = (
                None if floor is None else {"id": floor.id, "arm": floor.arm, "pairs": floor.pairs, "time": floor.time}
            )
            table = {"effect": args.effect, "noise": noise, "power": POWER, "level": LEVEL, "pairs": pairs}
            print_json({**table, "floor": source})
        elif pairs is not None:
            where = "" if floor is None else f" ({_source(floor)})"
            size = percent(args.effect).lstrip("+")
            print(f"{pairs} pairs show a difference of {size} in {POWER:.0%} of cases", end="")
            print(f", with noise of {percent(noise).lstrip('+')} from pair to pair{where}")
    if pairs is None:
        raise UsageError(f"{MOST_PAIRS} pairs do not show so little in so much noise", reason="too_small")
    return Exit.DONE


def _ls(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.bench.ab.verdict import judge  # noqa: PLC0415 - help need not wait for it
    from ttstack.cli.ab_text import report_json  # noqa: PLC0415

    reports = [judge(runs) for runs in _known().values()]
    if args.json:
        print_json([report_json(report) for report in reports])
    elif reports:
        print_table(_COLUMNS, [_row(report) for report in reports])
    else:
        note("there is no A/B here")
    return Exit.DONE


def _row(report: Report) -> tuple[str, ...]:
    plan = report.place
    pairs = f"{report.counted}/{plan.pairs}"
    verdict = report.verdict if report.finished or report.verdict == "invalid" else "not finished"
    begun = report.cells[0].record.opened.time[:19] + "Z"
    return report.id, begun, *(arm or "?" for arm in report.arms), report.suite, plan.metric, pairs, verdict
