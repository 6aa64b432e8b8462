"""ARM on a command line: its argument, what it asks for, its cards and its engine's program.

The rooms are imported where something is asked of them, so that help and completion need not wait for them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import note
from ttstack.cli.hosts import lacking_hugepages
from ttstack.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from ttstack.arm.shelf import Shelf
    from ttstack.arm.types import Asked
    from ttstack.cli.command import Context
    from ttstack.host.types import Card

ARM = "the arm's name, or the path of its file"


def add_arm(parser: argparse.ArgumentParser) -> None:
    """Add ``ARM``."""
    parser.add_argument("arm", metavar="ARM", help=ARM)


def add_host(parser: argparse.ArgumentParser) -> None:
    """Add what a command that starts nothing must be told of the host."""
    parser.add_argument("--here", action="store_true", help="find the cards on this host (needed for BDFs and serials)")
    pages = parser.add_mutually_exclusive_group()
    pages.add_argument(
        "--hugepages",
        action="store_const",
        const=True,
        help="mount /dev/hugepages-1G (default: with --here as this host's IOMMU says, else not)",
    )
    pages.add_argument(
        "--no-hugepages", dest="hugepages", action="store_const", const=False, help="do not mount /dev/hugepages-1G"
    )


def shelf_of(context: Context) -> Shelf:
    """Find the folder of arms that is meant. Raises ArmError."""
    from ttstack.arm.shelf import find_shelf  # noqa: PLC0415 - see the module

    return find_shelf(context.arms, os.environ, Path.cwd())


def asked_for(context: Context, name: str) -> Asked:
    """Read an arm by name or path. Raises ArmError and ArmFileError."""
    from ttstack.arm.load import load  # noqa: PLC0415 - see the module

    return load(name, shelf_of(context))


def cards_for(asked: Asked, *, here: bool) -> tuple[Card, ...]:
    """Name an arm's cards: among those of this host, or without a look at it. Raises TtxError."""
    from ttstack.render.cards import choose_cards, nominal_cards  # noqa: PLC0415 - see the module

    if not here:
        return nominal_cards(asked)
    from ttstack.host.cards import inventory  # noqa: PLC0415
    from ttstack.host.types import Roots  # noqa: PLC0415

    found = inventory(Roots())
    if not found and not asked.arm.cards.ids:
        hint = "leave --here out to take them as /dev/tenstorrent/0 and up"
        raise UsageError("--here: there are no cards on this host", hint=hint, reason="no_cards")
    lacking = lacking_hugepages(found, Roots())
    if lacking:
        note(f"ttx: {lacking}")
    return choose_cards(asked, found)


def engine_program(asked: Asked) -> tuple[str, ...] | None:
    """Say what stands in for the engine's own program; None when nothing does.

    A process has no image that brings the simulated engine along: it is this package, under this interpreter.
    """
    engine = asked.arm.engine
    return (sys.executable, "-m", "ttstack.sim") if engine.runtime == "process" and engine.kind == "sim" else None
