"""Where uses of caches are learned from, as a command line says it: this host, and every arm that could be meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.errors import ArmError
from ttstack.arm.shelf import find_shelf
from ttstack.cache.uses import Sources
from ttstack.errors import TtxError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.arm.shelf import Shelf
    from ttstack.cli.command import Context
    from ttstack.host.types import Places


def sources_of(context: Context, places: Places) -> Sources:
    """Name the sources for one host; a folder of arms that was named and is none is told among what is unread."""
    try:
        return sources_for(context, places)
    except TtxError as error:
        return Sources(places, (), no_arms=error.message)


def sources_for(context: Context, places: Places, arms: Sequence[str] = ()) -> Sources:
    """Name the sources for one host: with the arms of all shelves that are found from here, and ``arms``, files.

    Raises ArmError for a folder that was named and is none.
    """
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
