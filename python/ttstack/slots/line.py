"""The waiting line: one ticket file per waiter, alive as long as its flock is. Everything here runs under the guard."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.slots.errors import SlotsError
from ttstack.slots.lock import lock_folder, read_note, try_lock, write_note
from ttstack.slots.select import Want

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ticket:
    """A place in the line."""

    path: Path
    handle: int


def join(folder: Path, want: Want) -> Ticket:
    """Stand at the end of the line."""
    lock_folder(folder)
    last = max(map(int, _names(folder)), default=0)
    path = folder / f"{last + 1:012d}"
    handle = try_lock(path)
    if handle is None:  # under the guard nobody else can have it
        raise SlotsError(f"{path} is locked before it was made", hint="find out who else writes there")
    write_note(handle, want.to_json())
    return Ticket(path, handle)


def leave(ticket: Ticket) -> None:
    """Step out of the line. Without the guard only the lock may be let go; see ``older``, which sweeps."""
    os.close(ticket.handle)


def older(folder: Path, mine: Ticket | None) -> tuple[Want, ...]:
    """List the requests of those who came before, oldest first; remove tickets that nobody holds any more."""
    found = []
    for name in sorted(_names(folder)):
        path = folder / name
        if mine is not None and path == mine.path:
            break
        handle = try_lock(path)
        if handle is None:
            found.append(_want(path))
            continue
        with suppress(OSError):  # another user's in a sticky folder: it stays, and is skipped each time
            path.unlink()
        os.close(handle)
    return tuple(found)


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.isascii() and name.isdigit()]  # noqa: PTH208
    except FileNotFoundError:
        return []


def _want(path: Path) -> Want:
    note = read_note(path)
    ids, count = note.get("ids"), note.get("count")
    names = tuple(str(entry) for entry in ids) if isinstance(ids, list) else ()
    return Want(count if isinstance(count, int) else len(names), names)
