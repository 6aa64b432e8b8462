"""``ttx unit``: print a systemd unit for an arm, for hosts without NixOS."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, print_json

if TYPE_CHECKING:
    import argparse

    from ttstack.arm.types import Asked
    from ttstack.cli.command import Context
    from ttstack.host.types import Card

EXAMPLES = """\
  ttx unit prod
  ttx unit prod --here --hugepages | sudo tee /etc/systemd/system/ttx-prod.service
  ttx unit prod --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("arm", metavar="ARM", help="the arm's name, or the path of its file")
    parser.add_argument("--here", action="store_true", help="find the cards on this host (needed for BDFs and serials)")
    parser.add_argument("--hugepages", action="store_true", help="mount /dev/hugepages-1G, where the host needs it")
    parser.add_argument("--docker", metavar="PATH", help="the docker or podman program (default: in /usr/bin)")
    parser.add_argument("--owner", metavar="UID:GID", help="whom the image's engine runs as (default: 1000:1000)")
    add_json(parser)
    parser.set_defaults(func=_unit)


def _unit(context: Context, args: argparse.Namespace) -> int:
    from ttstack.arm.load import load  # noqa: PLC0415 - only what this verb needs
    from ttstack.arm.shelf import find_shelf  # noqa: PLC0415
    from ttstack.render.build import build_launch  # noqa: PLC0415
    from ttstack.render.unit import ENGINE_OWNER, exec_start, unit_name, unit_text  # noqa: PLC0415

    asked = load(args.arm, find_shelf(context.arms, os.environ, Path.cwd()))
    engine = asked.arm.engine
    # A process has no image that brings the simulated engine along: it is this package, under this interpreter.
    simulated = engine.runtime == "process" and engine.kind == "sim"
    launch = build_launch(
        asked,
        _cards(asked, here=args.here),
        hugepages=args.hugepages,
        engine_command=(sys.executable, "-m", "ttstack.sim") if simulated else None,
    )
    text = unit_text(
        launch,
        arm=asked.arm.name,
        description=asked.arm.description,
        boot_timeout_s=engine.boot_timeout_s,
        program=args.docker,
        owner=args.owner or ENGINE_OWNER,
    )
    if args.json:
        print_json(
            {
                "arm": asked.arm.name,
                "name": unit_name(launch),
                "exec_start": list(exec_start(launch, args.docker)),
                "devices": [device.source for device in launch.devices],
                "cache": launch.cache_key,
                "unit": text,
            }
        )
    else:
        print(text, end="")
    return 0


def _cards(asked: Asked, *, here: bool) -> tuple[Card, ...]:
    from ttstack.render.cards import choose_cards, nominal_cards  # noqa: PLC0415

    if not here:
        return nominal_cards(asked)
    from ttstack.host.cards import inventory  # noqa: PLC0415
    from ttstack.host.types import Roots  # noqa: PLC0415

    return choose_cards(asked, inventory(Roots()))
