"""``ttx slot``: who holds which card."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.cli.hosts import all_places
from ttstack.errors import Exit
from ttstack.records.build import jsonable
from ttstack.slots.view import look

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx slot ls
  ttx slot ls --json
"""
_COLUMNS = ("CARD", "BDF", "NODE", "BOARD", "STATE", "WHO")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_json(leaf(commands, "ls", "list the cards of this host and who holds them", EXAMPLES, _ls))


def _ls(_context: Context, args: argparse.Namespace) -> int:
    found = [(places, view) for places in all_places(os.environ) for view in look(places)]
    if args.json:
        print_json(
            [
                {
                    "card": jsonable(view.card),
                    "id": view.card.id,
                    "simulated": places.simulated,
                    "state": view.state,
                    "who": view.text,
                    "claim": None if view.claim is None else view.claim.to_note(),
                    "owner_lives": view.owner_lives,
                }
                for places, view in found
            ]
        )
    elif found:
        rows = [
            (
                view.card.id,
                view.card.bdf,
                "simulated" if places.simulated else view.card.node,
                view.card.board,
                view.state,
                view.text,
            )
            for places, view in found
        ]
        print_table(_COLUMNS, rows)
    else:
        note("this host has no cards; `ttx run sim` makes simulated ones")
    return Exit.DONE
