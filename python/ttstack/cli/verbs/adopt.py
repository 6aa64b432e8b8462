"""``ttx adopt``: give an engine whose supervisor died a new one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, print_json
from ttstack.cli.live import entry_of
from ttstack.errors import Exit
from ttstack.host.places import state_folder
from ttstack.run.adopt import adopt
from ttstack.run.control import choose, look_at, runs

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx adopt                the only run there is
  ttx adopt prod           the run of this arm
  ttx adopt 20260131T235959-4f2a9c
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="run id or arm; the only run when there is one")
    add_json(parser)
    parser.set_defaults(func=_adopt)


def _adopt(_context: Context, args: argparse.Namespace) -> int:
    run = choose(runs(state_folder(os.environ)), args.run)
    state = adopt(run, time.sleep)
    if args.json:
        print_json(entry_of(look_at(run.folder) or run))
    else:
        print(f"run {state.run} of arm {state.arm} is {state.phase}; its supervisor is pid {state.supervisor.pid}")
    return Exit.DONE
