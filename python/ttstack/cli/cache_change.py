"""``ttx cache adopt`` and ``trust``: what a person knows of a cache, and ttx cannot see."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import arm_names
from ttstack.cache.adopt import Adoption, adopt, trust
from ttstack.cache.build import builder_of
from ttstack.cache.checkpoint import signature
from ttstack.cli.arms import shelf_of
from ttstack.cli.command import note
from ttstack.cli.hosts import places_for
from ttstack.errors import TtxError, UsageError
from ttstack.host.process import myself
from ttstack.slots.claim import new_claim

if TYPE_CHECKING:
    from ttstack.arm.types import Asked
    from ttstack.cache.types import Marker
    from ttstack.cli.command import Context


def adopt_as(asked: Asked, key: str) -> Marker:
    """Make a directory the complete cache of an arm. Raises UsageError when the arm has another key, and TtxError."""
    _of(asked, key)
    run = f"adopt-{os.getpid()}"
    said = Adoption(cache_key(asked).inputs, builder_of(new_claim(run, asked.arm.name, myself())), _checkpoint(asked))
    return adopt(_root(asked), key, said, tell=lambda text: note(f"ttx: {text}"))


def trust_for(asked: Asked, key: str) -> bool:
    """Trust an arm's checkpoint for its cache; False when there is nothing to trust. Raises TtxError."""
    _of(asked, key)
    return trust(_root(asked), key, _checkpoint(asked))


def arm_with_key(context: Context, key: str) -> Asked:
    """Find an arm that has this key. Raises UsageError when there is none."""
    shelf = shelf_of(context)
    for name in arm_names(shelf):
        try:
            asked = load(name, shelf)
        except TtxError:
            continue  # it is not asked for
        if cache_key(asked).key == key:
            return asked
    raise UsageError(f"no arm in {shelf.arms} has the key {key}", hint="name one: ttx cache trust KEY --arm ARM")


def _of(asked: Asked, key: str) -> None:
    own = cache_key(asked).key
    if own != key:
        raise UsageError(
            f"arm {asked.arm.name} has the key {own}, not {key}",
            hint=f"what goes into it: ttx cache why {asked.arm.name}",
        )


def _checkpoint(asked: Asked) -> str:
    return signature(Path(asked.model.path)) if asked.model.path else ""


def _root(asked: Asked) -> Path:
    return places_for(os.environ, simulated=asked.arm.engine.kind == "sim").cache
