"""``ttx-sim serve ROOT FLAGS...``: the simulated engine, in vLLM's place."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ttstack.errors import UsageError
from ttstack.sim.flags import FLAGS, parse

if TYPE_CHECKING:
    from collections.abc import Sequence


def _usage() -> str:
    lines = [f"  --{flag.name:<30} {flag.meaning}" for flag in FLAGS]
    return "\n".join(["usage: ttx-sim serve ROOT [--flag [VALUE] ...]", "", *lines]) + "\n"


def main(argv: Sequence[str]) -> int:
    """Serve until stopped: 0 after a stop signal, 1 when the engine cannot start or dies, 2 for a bad command line."""
    if argv and argv[0] in {"-h", "--help"}:
        sys.stdout.write(_usage())
        return 0
    try:
        settings = parse(argv, os.environ)
    except UsageError as error:
        sys.stderr.write(f"ttx-sim: error: {error}\n")
        return error.exit_code
    from ttstack.sim.engine import run  # noqa: PLC0415 - asyncio only for a command line that is good

    return run(settings, os.environ)


def entry() -> None:
    """Console script."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    entry()
