"""The directory /tmp/ttlock, by which older drivers of these cards keep each other away: made is taken.

While any slot is held here, the directory is there too. Several of our slots share it. One that we did not make is
never removed. Ours has the sticky bit, which nobody gives to an empty directory of his own: mkdir(2) makes and signs it
at one stroke, so that no crash leaves one that could be another's. A flock on the directory keeps tmp cleaners off it
(systemd-tmpfiles(8) skips what is locked). Everything here runs under the guard.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from ttstack.host.files import is_at
from ttstack.slots.errors import SlotsError

MARKER = "held-by-ttx"  # a file inside, for people; it also tells that the directory is ours
_SIGNED = 0o1755


def join(path: Path) -> int | None:
    """Make the directory or share ours; return a descriptor that keeps it. None: another driver's, which has the cards.

    Raises SlotsError.
    """
    for _ in range(100):
        try:
            _make(path)
        except FileExistsError:
            if not _is_ours(path):
                return None
        except OSError as error:
            raise SlotsError(f"cannot make {path}: {error.strerror}") from error
        handle = _keep(path)
        if handle is not None:
            return handle
    raise SlotsError(f"{path} is made and removed again and again", hint="find out who removes it")


def _make(path: Path) -> None:
    path.mkdir(mode=_SIGNED)
    with suppress(OSError):  # no room for it: it is information
        path.chmod(_SIGNED)  # whatever the umask: slots of other users share it
        with open(path / MARKER, "xb", buffering=0) as file:  # noqa: PTH123 - made before a slot is had
            file.write(b"ttx holds cards: see `ttx slot ls`. ttx removes this directory itself.\n")


def _keep(path: Path) -> int | None:
    """Lock the directory; None when it is not there any more, as another ttx, with a guard of its own, swept it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SlotsError(f"cannot open {path}: {error.strerror}", hint="find out who put it there") from error
    fcntl.flock(handle, fcntl.LOCK_SH)
    if is_at(handle, path):
        return handle
    os.close(handle)
    return None


def _is_ours(path: Path) -> bool:
    try:
        seen = path.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(seen.st_mode):
        return False
    return bool(seen.st_mode & stat.S_ISVTX) or (path / MARKER).exists()  # the latter: an older ttx's


def sweep(path: Path) -> None:
    """Remove our directory when no slot keeps it any more (all descriptors of ``join`` are closed)."""
    if not _is_ours(path):
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
            (path / MARKER).unlink(missing_ok=True)
            path.rmdir()
    finally:
        os.close(handle)


def legacy_place(environ: dict[str, str] | os._Environ[str]) -> Path:
    """Say where older drivers look: $TTX_LEGACY_LOCK, else /tmp/ttlock."""
    return Path(environ.get("TTX_LEGACY_LOCK") or "/tmp/ttlock")  # noqa: S108 - the name is those drivers' own
