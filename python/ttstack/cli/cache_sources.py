"""Where uses of caches are learned from, as a command line says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.cache.uses import Sources
from ttstack.cli.arms import shelf_of
from ttstack.errors import TtxError

if TYPE_CHECKING:
    from ttstack.cli.command import Context
    from ttstack.host.types import Places


def sources_of(context: Context, places: Places) -> Sources:
    """Name the sources for one host: its own, and the arms of the folder that is meant."""
    try:
        return Sources(places, (shelf_of(context),))
    except TtxError as error:
        return Sources(places, (), no_arms=error.message)
