"""One lock file: flock on a file that is never unlinked, with a text inside that is for people only.

flock(2) belongs to the open file description, so it lasts until the last descriptor of it is closed, in whatever
process that is. So nothing here ever calls LOCK_UN, which would drop it for every holder of a copy.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from ttstack.host.files import is_at
from ttstack.slots.errors import SlotsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SHARED_FOLDER = 0o1777  # any user may add locks, none may remove another's
_SHARED_FILE = 0o666
_TEXT_LIMIT = 65536
# The folder is every user's: a link must not choose the file whose text is replaced, a pipe must not be waited for.
_CAREFULLY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def lock_folder(path: Path) -> Path:
    """Make the folder of locks, for all users of the host. Raises SlotsError."""
    try:
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(_SHARED_FOLDER)
    except OSError as error:
        raise SlotsError(
            f"cannot make the folder of locks {path}: {error.strerror}",
            hint="set TTX_LOCKS to a folder on a local disk that every user of the cards may write",
        ) from error
    return path


def open_lock(path: Path) -> int:
    """Open a lock file, making it when it is missing; return a descriptor that children don't inherit.

    Opened without O_CREAT first: with it the kernel refuses a file of another user in a sticky folder
    (fs.protected_regular). Raises SlotsError.
    """
    for _ in range(100):
        try:
            return _plain(os.open(path, os.O_RDWR | _CAREFULLY), path)
        except FileNotFoundError:
            with suppress(FileExistsError):
                made = os.open(path, os.O_RDWR | _CAREFULLY | os.O_CREAT | os.O_EXCL, _SHARED_FILE)
                os.fchmod(made, _SHARED_FILE)
                return made
        except OSError as error:
            raise SlotsError(f"cannot open the lock {path}: {error.strerror}", hint=_hint(path)) from error
    raise SlotsError(f"the lock {path} is made and removed again and again", hint="find out who removes lock files")


def _plain(handle: int, path: Path) -> int:
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise SlotsError(f"the lock {path} is not a file", hint=_hint(path))


def _hint(path: Path) -> str:
    odd = path.is_symlink() or (path.exists() and not path.is_file())
    return "find out who put it there, then remove it" if odd else ""


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Take the lock now, or return None when it is held. The descriptor is the lock: close it to let go.

    After the lock is had, the file under the path must still be the one that was locked: whoever removed it in between
    made a nameless file ours and a new one everybody's. Raises SlotsError.
    """
    for _ in range(100):
        handle = open_lock(path)
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if is_at(handle, path):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            os.close(handle)
            raise SlotsError(f"cannot lock {path}: {error.strerror}", hint="locks must lie on a local disk") from error
        os.close(handle)
    raise SlotsError(f"the lock {path} is replaced again and again", hint="find out who removes lock files")


@contextmanager
def guarded(path: Path, pause: Callable[[float], None], *, shared: bool = False) -> Iterator[None]:
    """Hold a lock for a moment. ``pause`` sleeps between attempts and may raise to give up."""
    handle = try_lock(path, shared=shared)
    while handle is None:
        pause(0.002)
        handle = try_lock(path, shared=shared)
    try:
        yield
    finally:
        os.close(handle)


def write_note(handle: int, note: dict[str, object] | None) -> None:
    """Replace the text inside a lock file that is held; None empties it. It is information, never the truth."""
    data = b"" if note is None else json.dumps(note, indent=2, ensure_ascii=False).encode() + b"\n"
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, data, 0)
    except OSError as error:
        raise SlotsError(f"cannot write into a lock file: {error.strerror}") from error


def read_note(path: Path) -> dict[str, object]:
    """Read the text inside a lock file; {} when there is none, or it is being written just now."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _CAREFULLY), "rb") as file:
            value: object = json.loads(file.read(_TEXT_LIMIT) or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
