"""``ttx down``: stop an engine gracefully and free its cards."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, note, print_json
from ttstack.cli.live import entry_of
from ttstack.errors import Exit
from ttstack.host.places import state_folder
from ttstack.run.control import choose, down, look_at, runs

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx down                 the only run there is
  ttx down prod            the run of this arm
  ttx down 20260131T235959-4f2a9c --kill
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="run id or arm; the only run when none is given")
    parser.add_argument(
        "--kill", action="store_true", help="SIGKILL for an engine that does not stop; its cards may need a reset then"
    )
    add_json(parser)
    parser.set_defaults(func=_down)


def _down(_context: Context, args: argparse.Namespace) -> int:
    run = choose(runs(state_folder(os.environ), note), args.run)
    state = down(run, kill=args.kill, tell=note)
    if args.json:
        print_json(entry_of(look_at(run.folder) or run))
    else:
        cards = ", ".join(card.id for card in state.cards)
        print(f"run {state.run} of arm {state.arm} is {state.phase}; cards: {cards}")
    return Exit.DONE
