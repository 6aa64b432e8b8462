"""Where ttx keeps things on this host."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.types import Places, Roots

if TYPE_CHECKING:
    from collections.abc import Mapping


def state_folder(environ: Mapping[str, str]) -> Path:
    """Find the folder of runs and records: $TTX_STATE, else /var/lib/ttx for root, else under $XDG_STATE_HOME.

    A relative $XDG_STATE_HOME counts as unset (XDG Base Directory Specification). Raises HostError for a user who has
    no home.
    """
    if environ.get("TTX_STATE"):
        return Path(environ["TTX_STATE"]).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/ttx")
    asked = Path(environ.get("XDG_STATE_HOME", ""))
    return (asked if asked.is_absolute() else _home(environ) / ".local" / "state") / "ttx"


def _home(environ: Mapping[str, str]) -> Path:
    if environ.get("HOME"):
        return Path(environ["HOME"]).absolute()
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError as error:
        hint = "set TTX_STATE to a folder that you may write"
        raise HostError(f"user {os.geteuid()} has no home folder", hint=hint) from error


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
