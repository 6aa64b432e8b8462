"""Compare the units that the NixOS module makes with what the arms of the same names become.

usage: arm_matches_module.py ARMS UNITS.json

UNITS.json is what serving-units.nix evaluates to. Prints each difference in words and exits 1 when there is one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.compare import differences
from ttstack.render.systemd import parse_command_line
from ttstack.render.unit import STOP_MARGIN_S, exec_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def faults(shelf: Shelf, name: str, unit: Mapping[str, object]) -> Iterator[str]:
    """Say how a unit differs from the arm of that name, one sentence for each thing."""
    asked = load(name, shelf)
    engine = asked.arm.engine
    launch = build_launch(asked, nominal_cards(asked))
    start = parse_command_line(str(unit["ExecStart"]))
    yield from differences(exec_start(launch), start)

    grace = str(engine.stop_grace_s)
    stop = (f"-{start[0]}", "stop", "-t", grace, launch.name)
    yield from (f"ExecStop: {text}" for text in differences(stop, parse_stop(str(unit["ExecStop"]))))
    for directive, wanted in (
        ("TimeoutStartSec", engine.boot_timeout_s),
        ("TimeoutStopSec", engine.stop_grace_s + STOP_MARGIN_S),
    ):
        if unit[directive] != wanted:
            yield f"{directive}: arm {wanted}, unit {unit[directive]}"


def parse_stop(text: str) -> tuple[str, ...]:
    """Read ``ExecStop=``, whose program has systemd's "-" in front of it."""
    prefix = '"-'
    if not text.startswith(prefix):
        return parse_command_line(text)
    program, *rest = parse_command_line(text.replace(prefix, '"', 1))
    return (f"-{program}", *rest)


def main(argv: list[str]) -> int:
    """Compare all; return 1 when anything differs."""
    if len(argv) != 2:  # noqa: PLR2004 - ARMS and UNITS.json
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    arms = Path(argv[0]).absolute()
    shelf = Shelf(arms, arms.parent / "pins")
    units = json.loads(Path(argv[1]).read_text(encoding="utf-8"))
    parted = False
    for name, unit in units.items():
        found = list(faults(shelf, name, unit))
        print(f"{name}: {'DIFFERENT' if found else 'the same, argument by argument'}")
        for sentence in found:
            print(f"  {sentence}")
        parted = parted or bool(found)
    if parted:
        print("\narms/ and modules/ must say the same: change the one that is wrong.")
    return int(parted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
