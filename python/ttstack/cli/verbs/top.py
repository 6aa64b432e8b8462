"""``ttx top``: what cards and runs do, live."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, note, print_json, print_table
from ttstack.cli.starting import seconds
from ttstack.cli.streams import encodable
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from ttstack.cli.command import Context
    from ttstack.run.top.types import Overview
    from ttstack.run.top.watch import Watch

EXAMPLES = """\
  ttx top
  ttx top --every 5
  ttx top --once                    one look, as a table
  ttx top --json | jq .runs         one look, for programs
  ttx top --json --every 10 --count 360 > hour.jsonl
"""
_LEAST_S = 0.1
_SETTLE_S = 30.0  # docker may take its time
_LINE = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "--every", type=seconds, default=1.0, metavar="SECONDS", help="how long from one look to the next (1)"
    )
    often = parser.add_mutually_exclusive_group()
    often.add_argument(
        "--once", action="store_true", help="print one look and end, as is done when stdout is no terminal"
    )
    often.add_argument(
        "--count", type=_count, metavar="N", help="print N looks and end; with --json each on a line of its own"
    )
    add_json(parser)
    parser.set_defaults(func=_top)


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is no number of looks")


def _top(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.hosts import all_places  # noqa: PLC0415 - help and completion need not wait for the rooms
    from ttstack.host.places import state_folder  # noqa: PLC0415
    from ttstack.run.top.watch import Watch  # noqa: PLC0415

    every_s = args.every
    if not (_LEAST_S <= every_s < math.inf):
        raise UsageError(f"--every {every_s:g} is no time between two looks", hint="0.1 or more seconds")
    printed = args.once or args.json or args.count is not None
    with Watch(lambda: all_places(os.environ), state_folder(os.environ), every_s) as watch:
        if not printed and _can_show():
            _show(watch, every_s)
        else:
            _print(watch, args)
    return Exit.DONE


def _can_show() -> bool:
    """Whether stdout is a terminal on which a screen can be drawn."""
    return sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in {"", "dumb", "unknown"}


def _show(watch: Watch, every_s: float) -> None:
    from ttstack.cli.top_screen import show  # noqa: PLC0415 - rich is for terminals
    from ttstack.cli.top_view import screen  # noqa: PLC0415

    def draw(width: int, height: int) -> Sequence[Text]:
        return screen(watch.overview(), width, height, every_s=every_s, encoding=sys.stdout.encoding)

    show(draw, every_s)


def _print(watch: Watch, args: argparse.Namespace) -> None:
    for number, seen in enumerate(_looks(watch, args.every, args.count or 1)):
        if args.json:
            from ttstack.cli.top_json import snapshot  # noqa: PLC0415 - as above

            _print_json(snapshot(seen), line=args.count is not None)
        else:
            if number:
                print()
            _print_tables(seen)
        sys.stdout.flush()


def _looks(watch: Watch, every_s: float, count: int) -> Iterator[Overview]:
    end = time.monotonic() + _SETTLE_S
    while not watch.settled() and time.monotonic() < end:
        time.sleep(0.02)
    due = time.monotonic()
    for number in range(count):
        if number:
            due += every_s
            time.sleep(max(0.0, due - time.monotonic()))
        yield watch.overview()


def _print_json(value: dict[str, object], *, line: bool) -> None:
    if not line:
        print_json(value)
        return
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    print(text if encodable(text) else json.dumps(value, allow_nan=False))


def _print_tables(seen: Overview) -> None:
    from ttstack.cli.top_cells import CARD_COLUMNS, RUN_COLUMNS, card_cells, run_cells, run_notes  # noqa: PLC0415

    for text in seen.troubles:
        note(f"ttx: {text}")
    degree = "°C" if encodable("°") else "C"
    if seen.cards:
        rows = [[cell.text or "-" for cell in card_cells(card, degree)] for card in seen.cards]
        print_table([column.title for column in CARD_COLUMNS], rows)
    else:
        print("no cards")
    print()
    if seen.runs:
        titles = [*(column.title for column in RUN_COLUMNS), "NOTE OR LAST LINE"]
        rows = []
        for run in seen.runs:
            notes = [cell.text[:_LINE] for cell in run_notes(run)]
            rows.append([*(cell.text or "-" for cell in run_cells(run)), notes[0] if notes else "-"])
        print_table(titles, rows)
    else:
        print("nothing runs here")
