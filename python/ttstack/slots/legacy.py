"""The directory /tmp/ttlock, by which older drivers of these cards keep each other away: made is taken.

While any slot is held here, the directory is there too. Several of our slots share it. One that we did not make is
never removed. A flock on the directory keeps tmp cleaners off it (systemd-tmpfiles(8) skips what is locked).
Everything here runs under the guard.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ttstack.slots.errors import SlotsError

MARKER = "held-by-ttx"  # what is inside tells that the directory is ours


def join(path: Path) -> int | None:
    """Make the directory or share ours; return a descriptor that keeps it. None: another driver's, which has the cards.

    Raises SlotsError.
    """
    try:
        path.mkdir()
    except FileExistsError:
        if not (path / MARKER).exists():
            return None
    except OSError as error:
        raise SlotsError(f"cannot make {path}: {error.strerror}") from error
    else:
        (path / MARKER).write_text("ttx holds cards: see `ttx slot ls`. ttx removes this directory itself.\n")
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def sweep(path: Path) -> None:
    """Remove our directory when no slot keeps it any more (all descriptors of ``join`` are closed)."""
    if not (path / MARKER).exists():
        return
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # gone meanwhile, or not ours to see
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        with suppress(OSError):  # another user's in /tmp: that user's next ttx removes it
            (path / MARKER).unlink()
            path.rmdir()
    finally:
        os.close(handle)


def legacy_place(environ: dict[str, str] | os._Environ[str]) -> Path:
    """Say where older drivers look: $TTX_LEGACY_LOCK, else /tmp/ttlock."""
    return Path(environ.get("TTX_LEGACY_LOCK") or "/tmp/ttlock")  # noqa: S108 - the name is those drivers' own
