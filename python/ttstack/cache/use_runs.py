"""Which directories under a root the holders of slots use, and the builds in flight."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cache.marker import is_key
from ttstack.cache.survey import survey
from ttstack.cache.tree import JIT, subfolders
from ttstack.cache.types import Use
from ttstack.host.cards import inventory
from ttstack.host.process import PROC, environ
from ttstack.slots.claim import from_note
from ttstack.slots.errors import SlotsError
from ttstack.slots.key import is_held
from ttstack.slots.lock import guarded, read_note
from ttstack.slots.slot import guard_path, lock_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ttstack.cache.types import Directory
    from ttstack.host.types import Places
    from ttstack.slots.claim import Claim

_GUARD_S = 5.0  # it is held for moments
_VARIABLES = ("TT_CACHE_PATH", "TT_METAL_CACHE")


def slot_uses(places: Places) -> tuple[list[Use], list[str]]:
    """Find what the runs use that hold a card. Raises HostError, SlotsError and CacheError."""
    found: list[Use] = []
    unread: list[str] = []
    for path, claim in _held(places):
        if claim is None:
            unread.append(f"the card of {path} is held by somebody who left no name")
        elif claim.kind == "program":
            found += _of_program(claim)
        elif is_key(claim.cache):
            who = f"run {claim.run} (arm {claim.arm}, user {claim.user})"
            found += [Use("slot", place, who) for place in _of_engine(claim, places.cache)]
        else:
            unread.append(f"run {claim.run} holds a card and does not tell which cache it uses (an older ttx does not)")
    return found, unread


def build_uses(root: Path, ours: Path | None = None) -> tuple[list[Use], list[str]]:
    """Find what is being built, and what that was seeded from. Raises CacheError.

    ``ours``: a directory whose lock this process has, which would otherwise be taken for that of a build.
    """
    return builds_among(root, survey(root), ours), []


def builds_among(root: Path, directories: Iterable[Directory], ours: Path | None = None) -> list[Use]:
    """Find it among directories that were looked at already."""
    found = []
    for directory in directories:
        if directory.standing == "building" and directory.marker is not None and directory.path != ours:
            who = f"run {directory.marker.builder.run} builds {directory.key}"
            found.append(Use("build", directory.path, who))
            if is_key(directory.marker.seeded_from):
                found.append(Use("build", root / directory.marker.seeded_from, f"{who} from it"))
    return found


def _held(places: Places) -> Iterator[tuple[Path, Claim | None]]:
    """Give who holds which card: those of this host, and those that a lock file alone still knows."""
    locks = places.locks
    if not locks.is_dir():
        return
    cards = {locks / lock_name(card.id): card for card in inventory(places.roots)}
    files = {path: cards.get(path) for path in locks.iterdir() if path.suffix == ".lock"}
    with guarded(guard_path(locks), _patience(guard_path(locks)), shared=True):
        held = [path for path in sorted(cards | files) if is_held(path, cards.get(path))]
        noted = [(path, from_note(read_note(path))) for path in held]
    yield from noted


def _patience(path: Path) -> Callable[[float], None]:
    end = time.monotonic() + _GUARD_S

    def pause(seconds: float) -> None:
        if time.monotonic() > end:
            raise SlotsError(f"{path} stayed locked for {_GUARD_S:g} s", hint=f"who has it: fuser {path}")
        time.sleep(seconds)

    return pause


def _of_engine(claim: Claim, root: Path) -> Iterator[Path]:
    """Give the tensor cache that a claim names, and the kernel caches of its arm, whatever their format."""
    yield root / claim.cache
    for name in subfolders(root / JIT):
        if name.startswith(f"{claim.arm}-"):
            yield root / JIT / name


def _of_program(claim: Claim) -> Iterator[Use]:
    """Give what a program's environment names, where it can be seen: what it does with its cards is its own affair."""
    seen = environ(claim.process.pid, PROC) if claim.owner_lives() else None
    for name in _VARIABLES:
        value = (seen or {}).get(name, "")
        if value.startswith("/"):
            yield Use("slot", Path(value), f"run {claim.run} (program {claim.arm}, user {claim.user})")
