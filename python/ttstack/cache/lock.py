"""Who may use a cache now: for each key a kernel lock, shared by those who read it, alone with whoever builds it.

The descriptor is the lock, as with slots: it lasts until the last copy of it is closed, in whatever process that is.
Locks are taken, turned and looked at under one guard, which is held for moments only: so a look (which has to take the
lock to learn that it is free) never makes a start fail, and a builder's lock becomes a reader's with nobody in between.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ttstack.cache.errors import CacheError
from ttstack.cache.types import LOCKS
from ttstack.host.files import is_at
from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import open_lock, try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

LockState = Literal["free", "shared", "exclusive"]

KEY = re.compile(r"[0-9a-f]{16}")
_GUARD = "guard"
_GUARD_S = 10.0  # it is held for moments; whoever has it longer was stopped (SIGSTOP)
_PAUSE_S = 0.002
_FOLDER_MODE = 0o1777  # any user may add locks, none may remove another's
_PEEK = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MOUNTS = Path("/proc/self/mountinfo")
# flock(2) is emulated there, kept on one host only, or not kept at all.
_REMOTE = re.compile(r"nfs\d*|fuse(\..*)?|cifs|smb\d*|afs|ceph|lustre|gpfs|beegfs|glusterfs|ocfs2|gfs2")


class KeyLock:
    """The lock of one key under a cache root. Neither method waits for another user of the cache."""

    def __init__(self, root: Path, key: str) -> None:
        if not KEY.fullmatch(key):
            raise CacheError(f"{key!r} is no key of a cache", hint="a key is 16 hex digits")
        self.root = root
        self.path = root / LOCKS / key

    def shared(self) -> int | None:
        """Take it for reading; None while somebody builds. Close the descriptor to let go. Raises CacheError."""
        return self._take(shared=True)

    def exclusive(self) -> int | None:
        """Take it for building or deleting; None while anybody has it. Raises CacheError."""
        return self._take(shared=False)

    def _take(self, *, shared: bool) -> int | None:
        lock_folder(self.root)
        with _guarded(self.root, make=True):
            try:
                return try_lock(self.path, shared=shared)
            except SlotsError as error:
                raise CacheError(error.message, hint=error.hint) from error


def lock_folder(root: Path) -> Path:
    """Make the folder of locks under a cache root, for all users of the host; return it. Raises CacheError."""
    folder = root / LOCKS
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(_FOLDER_MODE)
    except OSError as error:
        raise CacheError(
            f"cannot make the folder of locks {folder}: {error.strerror}",
            hint="mend its permissions, or set TTX_CACHE to a folder that you may write",
        ) from error
    return folder


def to_shared(root: Path, handle: int) -> None:
    """Turn a builder's lock into a reader's, in all its copies, with nobody in between. Raises CacheError.

    flock(2) lets go before it takes again; the guard keeps others from using that moment.
    """
    with _guarded(root, make=True):
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            raise CacheError(f"cannot share the lock of a cache under {root}: {error.strerror}") from error


def alone(root: Path, handle: int) -> bool:
    """Whether nobody else has a reader's lock that we hold, at this moment. Raises CacheError."""
    with _guarded(root, make=True):
        only = _could(handle, fcntl.LOCK_EX)
        # An attempt that fails has let go of the lock, too (flock(2)); the guard kept builders out meanwhile.
        if not _could(handle, fcntl.LOCK_SH):
            raise CacheError(f"the lock of a cache under {root} was lost", hint="who has it: lslocks")
        return only


def state(root: Path, key: str) -> LockState:
    """Look who has a key's lock, without making anything. Raises CacheError when that cannot be learned."""
    path = root / LOCKS / key
    if not os.path.lexists(path):
        return "free"  # a lock that was never made is held by nobody; of a link that leads nowhere that is not known
    with _guarded(root, make=False):
        handle = _peek(path)
        if handle is None:
            return "free"
        try:  # closed, and so let go, before the guard is
            if _could(handle, fcntl.LOCK_EX):
                return "free"
            return "shared" if _could(handle, fcntl.LOCK_SH) else "exclusive"
        finally:
            os.close(handle)


def is_local(root: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether locks under this folder (or its first parent that is there) are the kernel's own.

    On network and user-space file systems another host, or the daemon, has them (flock(2), nfs(5)). Raises CacheError
    when the mounts cannot be read.
    """
    place = Path(os.path.realpath(root))
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError as error:
        raise CacheError(f"cannot read {mounts}: {error.strerror}") from error
    kind, depth = "", -1
    for line in lines:
        words = line.split()
        at = words.index(b"-") if b"-" in words else 0
        point = Path(os.fsdecode(_unescape(words[4])))
        # Of two mounts at one place the later one lies on top.
        if at and place.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = os.fsdecode(words[at + 1]), len(point.parts)
    return not _REMOTE.fullmatch(kind)


def _unescape(word: bytes) -> bytes:
    """Undo the octal escapes of mountinfo (proc_pid_mountinfo(5))."""
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), word)


def _peek(path: Path) -> int | None:
    try:
        return os.open(path, _PEEK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CacheError(f"cannot look at the lock {path}: {error.strerror}") from error


def _could(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise CacheError(f"cannot ask for a lock: {error.strerror}", hint="locks must lie on a local disk") from error
    return True


@contextmanager
def _guarded(root: Path, *, make: bool) -> Iterator[None]:
    """Hold the guard of a root's locks. Without ``make``: where there is none, there is nobody to keep out."""
    path = root / LOCKS / _GUARD
    end = time.monotonic() + _GUARD_S
    while time.monotonic() < end:
        handle = _made(path) if make else _peek(path)
        if handle is None:
            yield
            return
        try:
            if _could(handle, fcntl.LOCK_EX) and is_at(handle, path):
                yield
                return
        finally:
            os.close(handle)
        time.sleep(_PAUSE_S)
    raise CacheError(f"{path} stayed locked for {_GUARD_S:g} s", hint=f"who has it: lslocks, or fuser {path}")


def _made(path: Path) -> int:
    try:
        return open_lock(path)
    except SlotsError as error:
        raise CacheError(error.message, hint=error.hint) from error
