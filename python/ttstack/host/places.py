"""Where ttx keeps things on this host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.types import Places, Roots

if TYPE_CHECKING:
    from collections.abc import Mapping


def state_folder(environ: Mapping[str, str]) -> Path:
    """Find the folder of runs and records: $TTX_STATE, else /var/lib/ttx for root, else under $XDG_STATE_HOME."""
    if environ.get("TTX_STATE"):
        return Path(environ["TTX_STATE"]).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/ttx")
    home = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local" / "state"
    return Path(home) / "ttx"


def records_file(state: Path) -> Path:
    """Say where the records of a host with this state folder are."""
    return state / "records.jsonl"


def simulated_tree(environ: Mapping[str, str]) -> Path:
    """Say where the simulated host's /sys, /proc and /dev lie."""
    return state_folder(environ) / "sim-host" / "tree"


def find_places(*, simulated: bool, environ: Mapping[str, str], roots: Roots | None = None) -> Places:
    """Say where things are. Locks and caches of the simulated host are its own, so that it can hurt nobody.

    ``roots`` are those of the simulated host when it is asked for; the real host has the kernel's.
    """
    state = state_folder(environ)
    if simulated:
        own = state / "sim-host"
        return Places(state, own / "locks", own / "cache", roots or Roots(), simulated=True)
    return Places(
        state=state,
        locks=Path(environ.get("TTX_LOCKS") or "/run/lock/ttx"),
        cache=Path(environ.get("TTX_CACHE") or "/var/cache/tenstorrent"),
        roots=roots or Roots(),
        simulated=False,
    )
