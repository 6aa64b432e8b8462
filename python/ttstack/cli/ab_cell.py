"""The child that makes one run of an A/B: ``python -m ttstack.cli.ab_cell ARMS ORDER`` (``ttstack.run.ab.cell``)."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import Context
from ttstack.cli.starting import prepare
from ttstack.errors import TtxError
from ttstack.run.ab.cell import CellReporter, end_with_owner, read_order, tell_fault, tell_result
from ttstack.run.flow import execute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.arm.types import Asked
    from ttstack.run.ab.cell import CellOrder


def main(argv: Sequence[str]) -> int:
    """Make the run; its owner is told of everything, and the record holds the rest."""
    arms, order = argv[0], read_order(argv[1])
    end_with_owner(order.owner)
    args = Namespace(arm=order.file, wait=0.0 if order.wait_s is None else order.wait_s, no_wait=False)
    try:
        asked, places, options = prepare(Context(arms=Path(arms) if arms else None), args, "run", order.suite)
        chosen = replace(options, settings=order.settings, cards=order.cards, ab=order.place, wait_s=order.wait_s)
        result = execute(_beside(asked, order), places, chosen, CellReporter())
    except TtxError as error:
        tell_fault(error.message, error.exit_code)
        return error.exit_code
    tell_result(result)
    return result.exit_code


def _beside(asked: Asked, order: CellOrder) -> Asked:
    """Give the arm as it runs beside the other one."""
    engine = replace(asked.arm.engine, port=order.port)
    return replace(asked, arm=replace(asked.arm, name=order.name, engine=engine))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
