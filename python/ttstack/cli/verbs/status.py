"""``ttx status``: what runs here now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ttstack.cli.command import add_json, note, print_json, print_table
from ttstack.errors import Exit, UsageError
from ttstack.host.places import state_folder
from ttstack.records.build import jsonable
from ttstack.run.control import LiveRun, look_at, runs
from ttstack.run.state import run_folder

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx status
  ttx status 20260131T235959-4f2a9c
  ttx status --json
"""
_COLUMNS = ("RUN", "ARM", "STATUS", "SINCE", "CARDS", "URL", "NOTE")
_SHOWN = {"booting", "ready", "stopping", "dirty", "orphaned"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="one run, whether it still runs or not")
    add_json(parser)
    parser.set_defaults(func=_status)


def _status(_context: Context, args: argparse.Namespace) -> int:
    state = state_folder(os.environ)
    if args.run:
        one = look_at(run_folder(state, args.run)) if "/" not in args.run else None
        if one is None:
            raise UsageError(f"no run {args.run!r} here", hint="see: ttx status, ttx records ls", reason="no_such_run")
        shown = [one]
    else:
        shown = [run for run in runs(state) if run.status in _SHOWN]
    if args.json:
        print_json([_entry(run) for run in shown])
    elif shown:
        print_table(_COLUMNS, [_row(run) for run in shown])
    else:
        note("nothing runs here")
    return Exit.DONE


def _note(run: LiveRun) -> str:
    if run.status == "orphaned":
        return f"its supervisor is gone: ttx down {run.state.run}"
    if run.status == "lost":
        return f"its supervisor and its engine are gone: ttx down {run.state.run} settles the record"
    if run.status == "booting":
        return f"step {run.state.step}" if run.state.step else ""
    return run.state.text


def _row(run: LiveRun) -> tuple[str, ...]:
    state = run.state
    cards = ",".join(card.id for card in state.cards)
    return (state.run, state.arm, run.status, state.since, cards, state.url, _note(run))


def _entry(run: LiveRun) -> dict[str, Any]:
    return {
        "run": run.state.run,
        "arm": run.state.arm,
        "status": run.status,
        "note": _note(run),
        "url": run.state.url,
        "log": str(run.folder.log),
        "last_line": (run.folder.tail(1) or [""])[0],
        "engine_pids": [process.pid for process in run.engine],
        "state": jsonable(run.state),
    }
