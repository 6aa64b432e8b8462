"""``ttx records``: list, show, compare, check, merge and query what was run and measured."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ttstack.cli.command import leaf, note, print_json, print_table
from ttstack.cli.record_files import add_records, file_of, find_run, read_log, tell
from ttstack.cli.since import since
from ttstack.cli.verbs.records_verify import add_merge, add_verify
from ttstack.cli.verbs.records_work import add_diff, add_query
from ttstack.errors import Exit

if TYPE_CHECKING:
    from ttstack.cli.command import Context
    from ttstack.records.line import Fault
    from ttstack.records.log import Log, RunRecord

EXAMPLES = """\
  ttx records ls
  ttx records ls --arm prod --since 7d --quotable
  ttx records show
  ttx records show 20260131T2359 --json
  ttx records diff 20260131T2359 last
  ttx records verify
  ttx records merge other-host.jsonl
  ttx records query "SELECT arm, cell, median FROM cells WHERE value = 'ttft_s'"
"""
_OUTCOMES = ("ok", "refused", "failed", "aborted", "interrupted", "running")
_LS = """\
  ttx records ls
  ttx records ls --arm prod --since 7d --quotable
  ttx records ls --since 2026-01-31 --outcome ok
  ttx records ls -n 0 --json
"""
_SHOW = "  ttx records show\n  ttx records show 20260131T2359\n  ttx records show last --json\n"
_COLUMNS = ("RUN", "WHEN", "VERB", "ARM", "OUTCOME", "QUOTABLE", "SECONDS", "SUITE")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ls = leaf(commands, "ls", "list runs, the newest last", _LS, _ls)
    ls.add_argument(
        "-n", "--limit", dest="count", type=_count, default=20, metavar="N", help="the newest N (20; 0 for all)"
    )
    ls.add_argument("--arm", metavar="ARM", help="only runs of this arm")
    ls.add_argument("--outcome", choices=_OUTCOMES, help="only runs that ended so")
    ls.add_argument(
        "--since",
        type=since,
        metavar="WHEN",
        help="only runs since 2026-01-31, 2026-01-31T12:00 (UTC), or 90m, 7d ago",
    )
    ls.add_argument("--quotable", action="store_true", help="only runs whose numbers may be quoted")
    add_records(ls)
    show = leaf(commands, "show", "show one run: asked, observed, identity, measured", _SHOW, _show)
    show.add_argument(
        "run", metavar="RUN", nargs="?", default="last", help="its id or the start of it; the newest when none is given"
    )
    add_records(show)
    add_diff(commands)
    add_verify(commands)
    add_merge(commands)
    add_query(commands)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return int(text)


def _ls(_context: Context, args: argparse.Namespace) -> int:
    path = file_of(args)
    log = read_log(path, thorough=False)
    chosen, faults = _choose(args, log)
    tell(path, faults)
    if args.json:
        told = [{"line": f.line, "kind": f.kind, "run": f.run, "message": f.message} for f in faults]
        print_json({"file": str(path), "runs": [_summary(run) for run in chosen], "faults": told})
    elif chosen:
        print_table(_COLUMNS, [_row(run) for run in chosen])
    else:
        note(f"no runs in {path}" if not log.runs else f"none of the {len(log.runs)} runs in {path} is like that")
    return Exit.DONE


def _choose(args: argparse.Namespace, log: Log) -> tuple[list[RunRecord], list[Fault]]:
    """Take the newest runs that are asked for; only these are looked at closely."""
    chosen: list[RunRecord] = []
    faults = list(log.faults)
    for run in reversed(log.runs):
        if args.count and len(chosen) == args.count:
            break
        if not _fits(args, run):
            continue
        fault = run.fault()
        if fault is not None:
            faults.append(fault)
        elif run.quotable or not args.quotable:
            chosen.append(run)
    return chosen[::-1], sorted(faults, key=lambda fault: fault.line)


def _fits(args: argparse.Namespace, run: RunRecord) -> bool:
    return (
        args.arm in {None, run.arm}
        and args.outcome in {None, run.outcome}
        and (args.since is None or run.time >= args.since)
        and (not args.quotable or run.may_be_quotable())
    )


def _show(_context: Context, args: argparse.Namespace) -> int:
    path = file_of(args)
    log = read_log(path, thorough=False)
    tell(path, log.faults)
    run = find_run(args.run, path, log)
    if args.json:
        print_json({**_summary(run), "open": run.raw_open, "close": run.raw_close})
    else:
        from ttstack.cli.record_text import print_record  # noqa: PLC0415 - rich only when it is needed

        print_record(run)
    return Exit.DONE


def _summary(run: RunRecord) -> dict[str, Any]:
    measured = run.closed.measured if run.closed else None
    return {
        "run": run.id,
        "time": run.time,
        "verb": run.opened.verb,
        "arm": run.arm,
        "simulated": run.opened.simulated,
        "outcome": run.outcome,
        "reason": run.closed.reason if run.closed else "",
        "text": run.closed.text if run.closed else "",
        "quotable": run.quotable,
        "not_quotable": list(run.not_quotable),
        "seconds": run.seconds,
        "suite": measured.suite if measured else "",
        "checks_ok": sum(check.ok for check in measured.checks) if measured else 0,
        "checks_failed": [check.name for check in measured.checks if not check.ok] if measured else [],
    }


def _row(run: RunRecord) -> tuple[str, ...]:
    entry = _summary(run)
    suite = ""
    if entry["suite"]:
        failed = entry["checks_failed"]
        suite = f"{entry['suite']} {entry['checks_ok']}/{entry['checks_ok'] + len(failed)}"
        suite += f" (failed: {', '.join(failed)})" if failed else ""
    reason = f" ({entry['reason']})" if entry["reason"] not in {"", entry["outcome"]} else ""
    return (
        entry["run"],
        entry["time"][:19] + "Z",
        entry["verb"],
        entry["arm"] + (" (simulated)" if entry["simulated"] else ""),
        entry["outcome"] + reason,
        "yes" if entry["quotable"] else "no",
        "" if entry["seconds"] is None else f"{entry['seconds']:.1f}",
        suite,
    )
