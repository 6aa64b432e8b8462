"""What opens a slot: the flock on its file, and a mark on the folder of devices, which no ``rm`` can take away.

A lock file that is removed while it is held leaves its holder with a nameless file, and the next comer with a new one.
So a slot also has a lock on one byte of the folder /dev itself, the byte that its card's id names. It is an open file
description lock (fcntl(2)): passed on like any descriptor, and free when its last copy is closed, also by a death. It
holds in every network and pid namespace, after a reset that makes the card's node anew, and for who has another folder
of locks; not for who has another /dev, as containers do: there the file alone counts.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import try_lock

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.host.types import Card

_RANGE = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid (fcntl(2))


@dataclass(frozen=True, slots=True)
class Key:
    """Two descriptors, which children don't inherit by themselves. The slot is held while either is open anywhere."""

    lock: int
    mark: int

    def close(self) -> None:
        """Let go, as far as this process is concerned."""
        os.close(self.mark)
        os.close(self.lock)


def try_key(path: Path, card: Card) -> Key | None:
    """Take a card's slot, of which this is the lock file, now; None when somebody has it. Raises SlotsError."""
    lock = try_lock(path)
    if lock is None:
        return None
    try:
        mark = _set_mark(card)
    except BaseException:
        os.close(lock)
        raise
    if mark is None:
        os.close(lock)
        return None
    return Key(lock, mark)


def is_held(path: Path, card: Card | None) -> bool:
    """Say whether anybody has a slot. Under the guard, which may be shared. Raises SlotsError.

    ``card`` None: one that is not here now, so that its lock file alone tells.
    """
    if card is not None and _is_marked(card):
        return True
    if not path.exists():
        return False
    handle = try_lock(path, shared=True)
    if handle is None:
        return True
    os.close(handle)
    return False


def _is_marked(card: Card) -> bool:
    folder = _open_folder(card)
    try:
        return _others_marked(folder, card)
    finally:
        os.close(folder)


def _set_mark(card: Card) -> int | None:
    """Set the mark, then look whether others have it: two who do this at once are both refused, never both served.

    A folder can only be read, so the mark is a read lock, which by itself keeps nobody away.
    """
    folder = _open_folder(card)
    try:
        try:
            fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _range(card, fcntl.F_RDLCK))
        except OSError as error:
            raise SlotsError(f"cannot mark card {card.id} as held: {error.strerror}") from error
        if not _others_marked(folder, card):
            return folder
    except BaseException:
        os.close(folder)
        raise
    os.close(folder)
    return None


def _others_marked(folder: int, card: Card) -> bool:
    """Ask as one who wanted to write: whatever another has is in the way of that. Our own is not."""
    try:
        told = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, _range(card, fcntl.F_WRLCK))
    except OSError as error:
        raise SlotsError(f"cannot ask whether card {card.id} is held: {error.strerror}") from error
    return int(struct.unpack(_RANGE, told)[0]) != fcntl.F_UNLCK


def _range(card: Card, kind: int) -> bytes:
    byte = int.from_bytes(sha256(card.id.encode()).digest()[:8], "big") >> 2  # off_t is signed
    return struct.pack(_RANGE, kind, os.SEEK_SET, byte, 1, 0)


def _open_folder(card: Card) -> int:
    """Open the folder of devices: that which holds the folder of nodes, and outlives it when the driver goes."""
    place = os.path.dirname(os.path.dirname(card.node))  # noqa: PTH120 - asked for each card before it is taken
    try:
        return os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SlotsError(f"cannot open {place}, on which held cards are marked: {error.strerror}") from error
