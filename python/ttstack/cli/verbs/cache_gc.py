"""``ttx cache gc``: delete caches that nobody uses."""

from __future__ import annotations

import argparse
import math
import os
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.cli.hosts import places_for
from ttstack.cli.human import size
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    from ttstack.cache.gc import Entry, Report
    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx cache gc --keep-days 30 --dry-run
  ttx cache gc --keep-days 30
  ttx cache gc --keep-days 7 --arm ./mine.toml --json
"""
_COLUMNS = ("CACHE", "STATE", "GC", "FREES", "WHY")
_SHOWN = {"keep": "keeps", "delete": "would delete", "deleted": "deleted", "failed": "failed"}
_WAY_OUT = "mend that (some of it may only be closed to who is not root), then run this again"


def add_gc(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``gc`` to the verb ``cache``."""
    parser = leaf(commands, "gc", "delete caches that nobody uses and nobody used for N days", EXAMPLES, _gc)
    parser.add_argument(
        "--keep-days",
        type=_days,
        required=True,
        metavar="N",
        help="keep complete caches that were used within N days; what failed builds left goes anyway",
    )
    parser.add_argument("--dry-run", action="store_true", help="decide, and delete nothing")
    parser.add_argument(
        "--arm",
        dest="arms",
        action="append",
        default=[],
        metavar="FILE",
        help="keep this arm's caches too, beside those of all arms that ttx finds from here; may be given often",
    )
    parser.add_argument("--sim", action="store_true", help="the caches of the simulated host")
    add_json(parser)


def _days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value >= 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days, such as 30, 0.5 or 0")
    return value


def _gc(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cache.gc import collect  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.cli.cache_sources import sources_for  # noqa: PLC0415

    for arm in args.arms:
        if not os.path.isfile(arm):  # noqa: PTH113 - the word as it was typed
            raise UsageError(f"--arm {arm}: there is no such file", hint="the path of an arm's file")
    sources = sources_for(context, places_for(os.environ, simulated=args.sim), args.arms)
    report = collect(sources, keep_days=args.keep_days, dry_run=args.dry_run)
    if args.json:
        print_json(_document(report))
    elif report.entries:
        print_table(_COLUMNS, [_row(entry) for entry in report.entries], cut=True)
    else:
        note(f"there are no caches in {report.root}")
    return _conclude(report)


def _conclude(report: Report) -> int:
    if report.unread:
        deleted = report.count("deleted")
        what = f"{deleted} were deleted, and then no more" if deleted else "nothing was deleted"
        note(f"ttx: {what}, as it cannot be learned who uses the caches:")
        for reason in report.unread:
            note(f"  {reason}")
        note(f"  {_WAY_OUT}")
        return Exit.REFUSED
    if report.dry_run:
        note(f"{report.count('delete')} would be deleted, which frees {size(report.freed)}")
    else:
        note(f"{report.count('deleted')} deleted, {size(report.freed)} freed")
    return Exit.FAILED if report.count("failed") else Exit.DONE


def _name(entry: Entry) -> str:
    path = entry.directory.path
    return f"{path.parent.name}/{path.name}" if path.parent.name in {"jit", ".ttx-trash"} else path.name


def _row(entry: Entry) -> tuple[str, ...]:
    verdict = entry.verdict
    frees = size(entry.weight.freed) if verdict.decision in {"delete", "deleted"} else "-"
    return (_name(entry), entry.directory.standing, _SHOWN[verdict.decision], frees, verdict.reason)


def _document(report: Report) -> dict[str, object]:
    return {
        "root": str(report.root),
        "keep_days": report.keep_days,
        "dry_run": report.dry_run,
        "unread": list(report.unread),
        "freed": report.freed,
        "entries": [
            {
                "path": str(entry.directory.path),
                "standing": entry.directory.standing,
                "kind": None if entry.directory.marker is None else entry.directory.marker.kind,
                "decision": entry.verdict.decision,
                "reason": entry.verdict.reason,
                "uses": [{"source": use.source, "path": str(use.path), "who": use.who} for use in entry.verdict.uses],
                "bytes": entry.weight.bytes,
                "freed": entry.weight.freed,
            }
            for entry in report.entries
        ],
    }
