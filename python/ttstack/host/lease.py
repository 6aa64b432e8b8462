"""Whether anybody has a plain file open, as the kernel knows without a look at any process.

A write lease is given only on a file that nobody else has open, by whatever descriptor (fcntl(2), "Leases"): not even
by one that was passed on, or that only a memory map has kept. Nodes of simulated cards are such files; devices are not.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_S = 0.5
_NAP_S = 0.001


def nobody_has(path: str) -> bool:
    """Say whether nobody has a file open now. False: somebody has, or the kernel does not tell (see ``holders``).

    It does not tell about files of others, without CAP_LEASE, nor on network filesystems. Raises nothing.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # Who opens the file in this moment makes the kernel tell us, by SIGIO, which ends a process. SIGURG does not.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


@contextmanager
def one_at_a_time(folder: str) -> Iterator[None]:
    """Keep askers about the files of a folder apart: each opens the file for a moment, which is not to have it.

    After half a second they go on beside each other: then one may be seen as having it, which errs to the safe side.
    """
    with ExitStack() as undo:
        with suppress(OSError):  # a folder that is not there, or has no locks, is nobody's to ask about
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            undo.callback(os.close, handle)
            until = time.monotonic() + _PATIENCE_S
            while not _locked(handle) and time.monotonic() < until:
                time.sleep(_NAP_S)
        yield


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
