"""Ask whoever holds slots for a program to give them back. Engines are stopped by ``ttx down``, never from here."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from ttstack.host.process import PROC, send
from ttstack.slots.errors import HeldError
from ttstack.slots.key import is_held
from ttstack.slots.lock import guarded, read_note
from ttstack.slots.slot import guard_path, lock_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ttstack.host.types import Places
    from ttstack.slots.view import SlotView

_POLL_S = 0.02


def ask_back(views: Sequence[SlotView], places: Places, wait_s: float) -> None:
    """Send SIGTERM to the holder of slots, all of one claim, and wait until they are given back.

    What a lock file says is anybody's word, so the process that it names is believed only when it has that very file
    locked. Raises HeldError (exit 3), HostError when it is another user's, SlotsError.
    """
    claim = views[0].claim
    card = views[0].card.id
    if claim is None:
        raise HeldError(f"card {card} is held by {views[0].text}", hint="see: ttx slot ls")
    if claim.kind == "engine":
        raise HeldError(f"card {card} is held by an engine: {claim}", hint=f"stop it with: ttx down {claim.run}")
    path = places.locks / lock_name(card)
    if not claim.owner_lives():
        raise HeldError(f"card {card} is held by {claim}{claim.gone}", hint="end what has the card; see: ttx card ls")
    if not has_locked(claim.process.pid, path):
        raise HeldError(
            f"process {claim.process.pid} is not seen to hold card {card}, whatever {path} says",
            hint="ask as the user whose process it is, or as root",
        )
    send(claim.process, signal.SIGTERM)
    until = time.monotonic() + wait_s
    while any(_still(places, view, claim.to_note()) for view in views):
        if time.monotonic() >= until:
            raise HeldError(f"{claim} was asked and has not given the card back within {wait_s:g} s")
        time.sleep(_POLL_S)


def _still(places: Places, view: SlotView, note: dict[str, object]) -> bool:
    path = places.locks / lock_name(view.card.id)
    with guarded(guard_path(places.locks), time.sleep, shared=True):
        return is_held(path, view.card) and read_note(path) == note


def has_locked(pid: int, path: Path, proc: Path = PROC) -> bool:
    """Say whether a process has a file open and locked by flock(2), as far as we may look (proc_pid_fdinfo(5))."""
    try:
        there = path.stat()
        for name in os.listdir(proc / str(pid) / "fd"):  # noqa: PTH208
            try:
                seen = (proc / str(pid) / "fd" / name).stat()
            except OSError:
                continue  # closed meanwhile
            if (seen.st_dev, seen.st_ino) == (there.st_dev, there.st_ino):
                info = (proc / str(pid) / "fdinfo" / name).read_text(encoding="ascii", errors="replace")
                if "FLOCK" in info and "WRITE" in info:
                    return True
    except OSError:
        return False
    return False
