"""``ttx run``: one run from slot to record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.cli.command import print_json
from ttstack.cli.starting import add_start, prepare, say_error
from ttstack.cli.streams import told
from ttstack.cli.suites import add_suite, settings_of

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context
    from ttstack.run.flow import Result

EXAMPLES = """\
  ttx run sim                    a whole run on simulated cards
  ttx run prod --no-wait         exit 3 at once when the cards are taken
  ttx run ./my-arm.toml --json   the closing line of the record, on stdout
  ttx run prod --suite infbench --set runs=10 --set ttft_s=1.5
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_start(parser)
    add_suite(parser)
    parser.set_defaults(func=_run)


def _run(context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.checklist import checklist  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.run.flow import execute  # noqa: PLC0415

    asked, places, options = prepare(context, args, "run", args.suite, settings_of(args))
    with checklist(f"ttx run {asked.arm.name}: {asked.arm.description}") as reporter:
        outcome = execute(asked, places, options, reporter)
    say_error(outcome)
    with told():
        if args.json:
            print_json(outcome.closed)
        else:
            _summary(outcome)
    return outcome.exit_code


def _summary(outcome: Result) -> None:
    closed = outcome.closed or {}
    print(f"run      {outcome.run}")
    reason = closed.get("reason") if closed.get("reason") != closed.get("outcome") else ""
    print(f"outcome  {closed.get('outcome')}{_in_brackets(reason)}, exit {int(outcome.exit_code)}")
    reasons = closed.get("quotable_reasons")
    why = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
    print(f"quotable {'yes' if closed.get('quotable') else f'no: {why}'}")
    print(f"more     ttx records show {outcome.run}")


def _in_brackets(text: object) -> str:
    return f" ({text})" if text else ""
