"""Who has a card's node open now. What cannot be learned completely is not "nobody"."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.process import PROC, command, pids

if TYPE_CHECKING:
    from ttstack.host.types import Card, Roots


@dataclass(frozen=True, slots=True)
class Holder:
    """A process with the node open. ``pid`` 0: a process of another pid namespace (tt-kmd's pid_vnr)."""

    pid: int
    command: str

    def __str__(self) -> str:
        if self.pid == 0:
            return "a process outside this pid namespace"
        return f"pid {self.pid} ({self.command})" if self.command else f"pid {self.pid}"


@dataclass(frozen=True, slots=True)
class Holders:
    """Who holds a card. Free means: nobody was found and nothing was out of sight."""

    found: tuple[Holder, ...]
    unseen: int  # processes that could not be looked into

    @property
    def free(self) -> bool:
        """Whether the card may be taken."""
        return not self.found and self.unseen == 0

    def __str__(self) -> str:
        parts = [str(holder) for holder in self.found]
        if self.unseen:
            parts.append(f"{self.unseen} processes could not be looked into")
        return ", ".join(parts) or "nobody"


def holders(card: Card, roots: Roots, *, simulated: bool) -> Holders:
    """Look who has this card's node open.

    The driver's own list (/proc/driver/tenstorrent/N/pids, tt-kmd 2.5.0) is complete and enough. Without it every
    process's descriptors are compared with the node by device number: a container's node is another inode of the same
    device. Raises HostError when the node itself cannot be looked at.
    """
    listed = _driver_pids(roots.proc / "driver" / "tenstorrent" / str(card.number) / "pids")
    if listed is not None and not simulated:
        return Holders(tuple(Holder(pid, command(pid) if pid else "") for pid in sorted(listed)), 0)
    return _scan(card.node, PROC if simulated else roots.proc, foreign=not simulated)


def _driver_pids(path: Path) -> set[int] | None:
    try:
        return {int(line) for line in path.read_text(encoding="ascii").split()}
    except (FileNotFoundError, NotADirectoryError):
        return None  # an older driver
    except (OSError, ValueError) as error:
        raise HostError(f"cannot read {path}: {error}") from error


def _key(seen: os.stat_result) -> tuple[str, int, int]:
    if stat.S_ISCHR(seen.st_mode):
        return ("device", seen.st_rdev, 0)
    return ("file", seen.st_dev, seen.st_ino)


def _scan(node: str, proc: Path, *, foreign: bool) -> Holders:
    """``foreign``: a process of another user that hides its descriptors counts as unseen.

    Simulated nodes are files of one user's own, which protect nothing, so there it does not.
    """
    try:
        wanted = _key(Path(node).stat())
    except OSError as error:
        raise HostError(f"cannot look at {node}: {error.strerror}") from error
    found: list[Holder] = []
    unseen = 0
    for pid in pids(proc):
        holds = _holds(proc / str(pid) / "fd", wanted)
        if holds:
            found.append(Holder(pid, command(pid, proc)))
        elif holds is None and foreign:
            unseen += 1
    return Holders(tuple(found), unseen)


def _holds(folder: Path, wanted: tuple[str, int, int]) -> bool | None:
    """Whether a process has it open; None when that cannot be seen."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except (FileNotFoundError, ProcessLookupError):
        return False  # ended meanwhile
    except OSError:
        return None
    for name in names:
        try:
            # Sockets, pipes and the like have no path; asking for the link first spares most of the stats.
            if str((folder / name).readlink()).startswith("/") and _key((folder / name).stat()) == wanted:
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue  # closed meanwhile
        except OSError:
            return None
    return False
