"""What ``ttx run`` and ``ttx up`` share: from the command line to a run, and from its outcome to words.

The rooms are imported where something is run, so that help and completion need not wait for them.
"""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from ttstack.cli.arms import add_arm, asked_for, engine_program
from ttstack.cli.command import add_json, note
from ttstack.errors import TtxError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from ttstack.arm.types import Asked
    from ttstack.cli.command import Context
    from ttstack.host.types import Places
    from ttstack.records.types import Json
    from ttstack.run.flow import Result
    from ttstack.run.options import Options

WAIT_S = 600.0


def add_start(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a start."""
    add_arm(parser)
    add_wait(parser)
    add_json(parser)


def add_wait(parser: argparse.ArgumentParser) -> None:
    """Add how long to wait for cards."""
    wait = parser.add_mutually_exclusive_group()
    wait.add_argument(
        "--wait", type=seconds, default=WAIT_S, metavar="SECONDS", help=f"how long to wait for cards ({WAIT_S:g})"
    )
    wait.add_argument("--no-wait", action="store_true", help="exit 3 at once when the cards are not free")


def wait_s(args: argparse.Namespace) -> float:
    """Read what ``add_wait`` added, in seconds. Raises UsageError."""
    if not args.wait >= 0:
        raise UsageError(f"--wait {args.wait:g} is no time to wait", hint="a number of seconds, 0 or more")
    return 0 if args.no_wait else float(args.wait)


def seconds(text: str) -> float:
    """Read a number of seconds, for argparse."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number of seconds") from None


def prepare(
    context: Context,
    args: argparse.Namespace,
    verb: Literal["run", "up"],
    suite: str = "smoke",
    settings: Mapping[str, Json] | None = None,
) -> tuple[Asked, Places, Options]:
    """Read the arm and say how and where it is to run. Raises TtxError."""
    from ttstack.cli.hosts import places_for  # noqa: PLC0415 - see the module
    from ttstack.run.options import Options  # noqa: PLC0415
    from ttstack.slots.legacy import legacy_place  # noqa: PLC0415

    asked = asked_for(context, args.arm)
    patience = wait_s(args)
    simulated = asked.arm.engine.kind == "sim"
    places = places_for(os.environ, simulated=simulated)
    engine_command = engine_program(asked)
    if context.verbose:
        _echo(asked, engine_command)
    if not simulated:
        _warn_of_hugepages(places)
    return (
        asked,
        places,
        Options(
            verb=verb,
            suite=suite,
            settings=settings or {},
            wait_s=patience,
            engine_command=engine_command,
            extra_env=_simulated_env(places) if simulated and asked.arm.engine.runtime == "process" else {},
            legacy=None if simulated else legacy_place(os.environ),
        ),
    )


def _warn_of_hugepages(places: Places) -> None:
    """Say that the host's cards lack hugepages: an engine says so late, and not in these words."""
    from ttstack.cli.hosts import lacking_hugepages  # noqa: PLC0415 - see the module
    from ttstack.host.cards import inventory  # noqa: PLC0415

    try:
        lacking = lacking_hugepages(inventory(places.roots), places.roots)
    except TtxError:
        return  # cards that cannot be read are refused in a moment, with a record
    if lacking:
        note(f"ttx: {lacking}")


def _echo(asked: Asked, engine_command: Sequence[str] | None) -> None:
    from shlex import join  # noqa: PLC0415 - see the module

    from ttstack.render.build import engine_argv  # noqa: PLC0415

    note(f"$ {join(engine_argv(asked, engine_command))}")


def _simulated_env(places: Places) -> dict[str, str]:
    from ttstack.run.link import python_path  # noqa: PLC0415 - see the module

    return {
        "TTX_SIM_DEV": str(places.roots.dev / "tenstorrent"),
        "PYTHONPATH": python_path(),
        "PYTHONUNBUFFERED": "1",
    }


def say_error(outcome: Result) -> None:
    """Say on stderr what went wrong, if anything did."""
    if outcome.error is not None:
        note(f"ttx: {outcome.error}")
