"""``ttx doctor``: can this host run engines, and has it lost memory."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, print_json
from ttstack.errors import Exit

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx doctor
  ttx doctor --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_json(parser)
    parser.set_defaults(func=_doctor)


def _doctor(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.diagnosis import entry_of, show, waited  # noqa: PLC0415 - help need not wait for the rooms
    from ttstack.cli.hosts import all_places  # noqa: PLC0415
    from ttstack.doctor.checkup import examine  # noqa: PLC0415

    with waited(sys.stderr, time.monotonic) as waiting:
        report = examine(all_places(os.environ), os.environ, waiting=waiting)
    if args.json:
        print_json(entry_of(report))
    else:
        show(report, sys.stdout)
    return Exit.FAILED if report.level == "bad" else Exit.DONE
