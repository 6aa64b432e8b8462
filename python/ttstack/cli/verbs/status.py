"""``ttx status``: what runs here now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, note, print_json, print_table
from ttstack.cli.live import entry_of, last_line, note_of, resources
from ttstack.errors import Exit, UsageError
from ttstack.host.places import state_folder
from ttstack.run.control import look_at, runs
from ttstack.run.state import run_folder

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ttstack.cli.command import Context
    from ttstack.run.control import LiveRun

EXAMPLES = """\
  ttx status
  ttx status prod                   the run of this arm
  ttx status 20260131T235959-4f2a9c
  ttx status --json
"""
_COLUMNS = ("RUN", "ARM", "STATUS", "AGE", "MEMORY", "DISK", "CARDS", "URL", "NOTE OR LAST LINE")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LINE = 100
_SHOWN = {"booting", "ready", "stopping", "dirty", "orphaned"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="run id, whether it still runs or not, or arm; all that runs when none is given",
    )
    add_json(parser)
    parser.set_defaults(func=_status)


def _status(_context: Context, args: argparse.Namespace) -> int:
    state = state_folder(os.environ)
    shown = [run for run in runs(state, note) if run.status in _SHOWN]
    if args.run:
        shown = _named(args.run, state, shown)
    if args.json:
        print_json([entry_of(run) for run in shown])
    elif shown:
        print_table(_COLUMNS, [_row(run) for run in shown])
    else:
        note("nothing runs here")
    return Exit.DONE


def _named(name: str, state: Path, shown: list[LiveRun]) -> list[LiveRun]:
    one = look_at(run_folder(state, name)) if "/" not in name else None
    found = [one] if one is not None else [run for run in shown if run.state.arm == name]
    if not found:
        what = f"no run {name!r} here, and no arm of that name runs"
        raise UsageError(what, hint="see: ttx status, ttx records ls", reason="no_such_run")
    return found


def _row(run: LiveRun) -> tuple[str, ...]:
    state = run.state
    cards = ",".join(card.id for card in state.cards)
    has = resources(run)
    memory = f"{_size(has['memory_bytes'])}, {_size(has['memory_available_bytes'])} free"
    disk = f"{_size(has['cache_bytes'])}, {_size(has['disk_free_bytes'])} free"
    note = note_of(run) or last_line(run)[:_LINE]
    return (state.run, state.arm, run.status, _age(has["age_s"]), memory, disk, cards, state.url, note)


def _size(count: int | None) -> str:
    """Write a number of bytes for people, in powers of ten as disks and RAM of cards are sold."""
    if count is None:
        return "?"
    size, unit = float(count), "B"
    for bigger in ("kB", "MB", "GB", "TB"):
        if size < 1000:  # noqa: PLR2004 - the step between units
            break
        size, unit = size / 1000, bigger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _age(seconds: int | None) -> str:
    if seconds is None:
        return "?"
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min" if seconds < _DAY else f"{seconds // _DAY} d"
