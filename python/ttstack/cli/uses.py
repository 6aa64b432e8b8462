"""Where a command line's uses of caches are learned from: this host, and every arm that could be meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.arm.shelf import Shelf
    from ttstack.cache.uses import Sources
    from ttstack.cli.command import Context
    from ttstack.host.types import Places


def sources_for(context: Context, places: Places, arms: Sequence[str] = ()) -> Sources:
    """Say where to look: all shelves that ``ttx`` would take arms from here, and ``arms``, files that were named.

    Raises ArmError for a folder that was named and is none.
    """
    from ttstack.arm.shelf import find_shelf  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.cache.uses import Sources  # noqa: PLC0415

    shelves = shelves_for(context, os.environ, Path.cwd())
    lacking = "" if shelves else "there is no folder of arms here (name it: ttx --arms DIR ...)"
    files = [Path(arm).absolute() for arm in arms]
    # A file's pin and model stand where `ttx up FILE` finds them, else beside it.
    named = [(str(file), shelves[0] if shelves else find_shelf(file.parent, {}, Path.cwd())) for file in files]
    return Sources(places, shelves, tuple(named), no_arms=lacking)


def shelves_for(context: Context, environ: Mapping[str, str], cwd: Path) -> tuple[Shelf, ...]:
    """Find every shelf, not only the first: ``--arms``, $TTX_ARMS, that of the current folder, and what ttx came with.

    Raises ArmError for one that was named and is none.
    """
    from ttstack.arm.errors import ArmError  # noqa: PLC0415 - as above
    from ttstack.arm.shelf import find_shelf  # noqa: PLC0415

    found = []
    if context.arms is not None:
        found.append(find_shelf(context.arms, {}, cwd))
    if environ.get("TTX_ARMS"):
        found.append(find_shelf(None, {"TTX_ARMS": environ["TTX_ARMS"]}, cwd))
    try:
        found.append(find_shelf(None, {}, cwd))
    except ArmError as error:
        if error.reason != "no_arms_folder":
            raise
    if environ.get("TTX_SHARE"):
        found.append(find_shelf(cwd / environ["TTX_SHARE"] / "arms", {}, cwd))
    return tuple({os.path.realpath(shelf.arms): shelf for shelf in reversed(found)}.values())[::-1]
