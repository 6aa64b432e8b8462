"""``ttx unit``: print a systemd unit for an arm, for hosts without NixOS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.cli.arms import add_arm, add_host, asked_for, cards_for, engine_program
from ttstack.cli.command import add_json, print_json
from ttstack.errors import Exit

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  ttx unit prod
  ttx unit prod --here --hugepages | sudo tee /etc/systemd/system/ttx-prod.service
  ttx unit prod --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_arm(parser)
    add_host(parser)
    parser.add_argument("--docker", metavar="PATH", help="the docker or podman program (default: in /usr/bin)")
    parser.add_argument("--owner", metavar="UID:GID", help="whom the image's engine runs as (default: 1000:1000)")
    add_json(parser)
    parser.set_defaults(func=_unit)


def _unit(context: Context, args: argparse.Namespace) -> int:
    from ttstack.render.build import build_launch  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.render.unit import ENGINE_OWNER, exec_start, unit_name, unit_text  # noqa: PLC0415

    asked = asked_for(context, args.arm)
    launch = build_launch(
        asked,
        cards_for(asked, here=args.here),
        hugepages=args.hugepages,
        engine_command=engine_program(asked),
    )
    text = unit_text(
        launch,
        arm=asked.arm.name,
        description=asked.arm.description,
        boot_timeout_s=asked.arm.engine.boot_timeout_s,
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
    return Exit.DONE
