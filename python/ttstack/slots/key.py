"""What opens a slot: the flock on its file, and a name that the kernel keeps, which no ``rm`` can take away.

A lock file that is removed while it is held leaves its holder with a nameless file, and the next comer with a new one.
So a slot also has an abstract Unix socket (unix(7)): bound by one at a time, passed on like any descriptor, and free
when its last copy is closed, also by a death. Such names are per network namespace, file locks are not: each covers
what the other does not see.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import try_lock

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Key:
    """Two descriptors, which children don't inherit by themselves. The slot is held while either is open anywhere."""

    lock: int
    name: int

    def close(self) -> None:
        """Let go, as far as this process is concerned."""
        os.close(self.name)
        os.close(self.lock)


def try_key(path: Path) -> Key | None:
    """Take the slot of a lock file now; None when somebody has it. Under the guard. Raises SlotsError."""
    lock = try_lock(path)
    if lock is None:
        return None
    try:
        name = _bind(path)
    except BaseException:
        os.close(lock)
        raise
    if name is None:
        os.close(lock)
        return None
    return Key(lock, name)


def is_held(path: Path) -> bool:
    """Say whether anybody has the slot of a lock file. Under the guard, which may be shared. Raises SlotsError."""
    if _is_bound(path):
        return True
    if not path.exists():
        return False
    handle = try_lock(path, shared=True)
    if handle is None:
        return True
    os.close(handle)
    return False


def _address(path: Path) -> bytes:
    """Name the slot: by the place of its lock file too, as simulated hosts have cards of the same serials."""
    place = sha256(os.fsencode(os.path.realpath(path.parent))).hexdigest()[:16]
    return f"\0ttx-slot-{place}-{sha256(os.fsencode(path.name)).hexdigest()[:16]}".encode()


def _bind(path: Path) -> int | None:
    with _socket() as end:
        try:
            end.bind(_address(path))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return None
            raise SlotsError(f"cannot keep the name of the lock {path}: {error.strerror}") from error
        return end.detach()


def _is_bound(path: Path) -> bool:
    with _socket() as end:  # a datagram socket: to connect is to look, and its owner notices nothing
        try:
            end.connect(_address(path))
        except ConnectionRefusedError:
            return False
        except OSError as error:
            raise SlotsError(f"cannot look for the name of the lock {path}: {error.strerror}") from error
        return True


def _socket() -> socket.socket:
    try:
        return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError as error:
        raise SlotsError(f"cannot make a Unix socket: {error.strerror}", hint="slots need AF_UNIX") from error
