"""``ttx up``: boot and identify an arm, and leave it running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.cli.command import print_json
from ttstack.cli.starting import add_start, prepare, say_error
from ttstack.cli.streams import told

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx up sim
  ttx up prod --wait 3600
  ttx down prod
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_start(parser)
    parser.set_defaults(func=_up)


def _up(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.checklist import checklist  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.cli.live import entry_of  # noqa: PLC0415
    from ttstack.run.control import look_at  # noqa: PLC0415
    from ttstack.run.flow import execute  # noqa: PLC0415
    from ttstack.run.state import run_folder  # noqa: PLC0415

    asked, places, options = prepare(context, args, "up")
    with checklist(f"ttx up {asked.arm.name}: {asked.arm.description}") as reporter:
        outcome = execute(asked, places, options, reporter)
    say_error(outcome)
    state = outcome.state
    with told():
        if args.json:
            live = look_at(run_folder(places.state, outcome.run)) if outcome.closed is None else None
            shown = entry_of(live) if live is not None else {"run": outcome.run, "arm": asked.arm.name, "state": None}
            print_json({**shown, "closed": outcome.closed})
        elif outcome.closed is None and state is not None:
            print(f"run      {outcome.run}")
            print(f"serves   {asked.model.served_name} at {state.url}/v1")
            print(f"log      {run_folder(places.state, outcome.run).log}")
            print(f"stop it  ttx down {outcome.run}")
        else:
            print(f"run      {outcome.run}")
            print(f"more     ttx records show {outcome.run}")
    return outcome.exit_code
