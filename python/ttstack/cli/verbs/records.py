"""``ttx records``: list and show what was run and measured."""

from __future__ import annotations

import argparse
import os
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.errors import Exit, TtxError, UsageError
from ttstack.host.places import records_file, state_folder
from ttstack.host.process import alive, boot_id
from ttstack.host.types import ProcessId
from ttstack.records.store import Store

if TYPE_CHECKING:
    from ttstack.cli.command import Context
    from ttstack.records.log import Log, RunRecord
    from ttstack.records.types import Opened

EXAMPLES = """\
  ttx records ls
  ttx records ls --arm prod --outcome ok -n 0 --json
  ttx records show
  ttx records show 20260131T2359 --json
"""
_OUTCOMES = ("ok", "refused", "failed", "aborted", "interrupted", "running")
_LS = "  ttx records ls\n  ttx records ls --arm prod --outcome ok\n  ttx records ls -n 0 --json\n"
_SHOW = "  ttx records show\n  ttx records show 20260131T2359\n  ttx records show last --json\n"
_COLUMNS = ("RUN", "WHEN", "VERB", "ARM", "OUTCOME", "QUOTABLE", "SECONDS", "SUITE")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ls = leaf(commands, "ls", "list runs, the newest last", _LS, _ls)
    ls.add_argument("-n", dest="count", type=_count, default=20, metavar="N", help="the newest N (20; 0 for all)")
    ls.add_argument("--arm", metavar="ARM", help="only runs of this arm")
    ls.add_argument("--outcome", choices=_OUTCOMES, help="only runs that ended so")
    show = leaf(commands, "show", "show one run: asked, observed, identity, measured", _SHOW, _show)
    show.add_argument(
        "run", metavar="RUN", nargs="?", default="last", help="its id or the start of it; the newest when none is given"
    )
    for command in (ls, show):
        command.add_argument(
            "--records", type=Path, metavar="FILE", help="the records of another host, or their folder"
        )
        add_json(command)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return int(text)


def _read(args: argparse.Namespace) -> tuple[Path, Log]:
    """Read the records and say on stderr which lines are none."""
    path: Path = args.records or records_file(state_folder(os.environ))
    if args.records is not None and path.is_dir():
        path = records_file(path)
    if args.records is not None and not path.exists():
        hint = "--records takes a records.jsonl, or the state folder that holds it"
        raise UsageError(f"there is no file {path}", hint=hint, reason="no_records")
    log = Store(path).read(partial(_lives, path.parent))
    for fault in log.faults:
        run = f" of run {fault.run}" if fault.run else ""
        note(f"{path}:{fault.line}: left out, {fault.kind}{run}: {fault.message}")
    return path, log


def _lives(state: Path, opened: Opened) -> bool:
    """Whether who opened a run lives, or who adopted it since: its state says so."""
    from ttstack.run.state import run_folder  # noqa: PLC0415 - few runs are neither closed nor their first owner's

    owner = opened.owner
    if owner.boot_id != boot_id():
        return False
    if alive(ProcessId(owner.pid, owner.start)):
        return True
    try:
        now = run_folder(state, opened.run).read()
    except TtxError:
        return False
    return now is not None and now.boot_id == owner.boot_id and alive(now.supervisor)


def _ls(_context: Context, args: argparse.Namespace) -> int:
    path, log = _read(args)
    chosen = [run for run in log.runs if args.arm in {None, run.opened.arm} and args.outcome in {None, run.outcome}][
        -args.count :
    ]
    if args.json:
        faults = [{"line": f.line, "kind": f.kind, "run": f.run, "message": f.message} for f in log.faults]
        print_json({"file": str(path), "runs": [_summary(run) for run in chosen], "faults": faults})
    elif chosen:
        print_table(_COLUMNS, [_row(run) for run in chosen])
    else:
        note(f"no runs in {path}" if not log.runs else f"none of the {len(log.runs)} runs in {path} is like that")
    return Exit.DONE


def _show(_context: Context, args: argparse.Namespace) -> int:
    path, log = _read(args)
    run = _find(args.run, path, log)
    if args.json:
        print_json({**_summary(run), "open": run.raw_open, "close": run.raw_close})
    else:
        from ttstack.cli.record_text import print_record  # noqa: PLC0415 - rich only when it is needed

        print_record(run)
    return Exit.DONE


def _find(name: str, path: Path, log: Log) -> RunRecord:
    if not log.runs:
        raise UsageError(f"no runs in {path}", hint="make one: ttx run sim", reason="no_records")
    if name == "last":
        return log.runs[-1]
    found = [run for run in log.runs if run.id == name] or [run for run in log.runs if run.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    ids = [run.id for run in found] if found else get_close_matches(name, [run.id for run in log.runs], 3)
    what = f"{len(found)} runs begin with {name!r}" if found else f"no run {name!r} in {path}"
    raise UsageError(
        what, hint=f"did you mean: {', '.join(ids[-5:])}" if ids else "see: ttx records ls", reason="no_run"
    )


def _summary(run: RunRecord) -> dict[str, Any]:
    measured = run.closed.measured if run.closed else None
    return {
        "run": run.id,
        "time": run.opened.time,
        "verb": run.opened.verb,
        "arm": run.opened.arm,
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
