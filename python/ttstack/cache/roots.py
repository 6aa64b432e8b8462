"""Which cache roots this host has, so that builds under different roots of one disk see each other.

A note for each root lies beside the locks of the cards, where every user of the cards finds it. It only says where to
look: what is built there, the markers under that root tell.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import lock_folder, open_lock, read_note, try_lock, write_note

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "cache-roots"
_GUARD = "guard"
_PAUSE_S = 0.003


def known_roots(locks: Path) -> tuple[Path, ...]:
    """List the roots under which something was built since this host started, without links. Raises CacheError."""
    try:
        names = sorted(os.listdir(locks / FOLDER))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise CacheError(f"cannot list {locks / FOLDER}: {error.strerror}") from error
    told = (read_note(locks / FOLDER / name).get("root") for name in names if name != _GUARD)
    return tuple(Path(root) for root in told if isinstance(root, str) and root.startswith("/") and "\0" not in root)


def note_of(locks: Path, root: Path) -> Path:
    """Say where the note about a root is."""
    return locks / FOLDER / sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]


@contextmanager
def reserving(locks: Path, root: Path, *, wait_s: float = 30.0) -> Iterator[None]:
    """Hold the host's right to reserve room, and note the root, until the marker that claims the room is written.

    The lock of one root's registry keeps out nobody who builds under another root of the same disk. Take this one
    first. Raises CacheRefusedError when others hold it for ``wait_s`` seconds, CacheError.
    """
    end = time.monotonic() + wait_s
    try:
        lock_folder(locks)
        guard = lock_folder(locks / FOLDER) / _GUARD
        held = try_lock(guard)
        while held is None:
            if time.monotonic() > end:
                raise CacheRefusedError(f"others reserved room for {wait_s:g} s", hint=f"who: fuser {guard}")
            time.sleep(_PAUSE_S)
            held = try_lock(guard)
        try:
            _note(note_of(locks, root), os.path.realpath(root))
            yield
        finally:
            os.close(held)
    except SlotsError as error:
        raise CacheError(error.message, hint=error.hint) from error


def _note(path: Path, root: str) -> None:
    if read_note(path).get("root") == root:
        return
    handle = open_lock(path)
    try:
        write_note(handle, {"root": root})
    finally:
        os.close(handle)
