"""Who has a card now: which processes and containers. What cannot be learned completely is not "nobody"."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host import containers
from ttstack.host.engines import hidden
from ttstack.host.errors import HostError
from ttstack.host.lease import nobody_has, one_at_a_time
from ttstack.host.process import PROC, command, pids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ttstack.host.containers import Container, Containers
    from ttstack.host.types import Card, Roots

    _Key = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has the node open. ``pid`` 0: one of another pid namespace (tt-kmd's pid_vnr).

    ``passed_on``: it opened the node and has it no more; a process that got the descriptor from it has.
    """

    pid: int
    command: str
    passed_on: bool = False

    def __str__(self) -> str:
        if self.pid == 0:
            return "a process outside this pid namespace"
        if self.passed_on:
            return f"a process that has the node from pid {self.pid}"
        return f"pid {self.pid} ({self.command})" if self.command else f"pid {self.pid}"


@dataclass(frozen=True, slots=True)
class Holders:
    """Who has a card. Free means: nobody was found and nothing was out of sight."""

    found: tuple[Holder, ...] = ()
    containers: tuple[Container, ...] = ()
    unseen: int = 0  # processes that could not be looked into
    troubles: tuple[str, ...] = ()  # what else could not be looked at, a sentence each
    absent: tuple[str, ...] = ()  # which container engines are not here, so that they have no containers

    @property
    def complete(self) -> bool:
        """Whether everything could be looked at."""
        return self.unseen == 0 and not self.troubles

    @property
    def held(self) -> bool:
        """Whether somebody was found."""
        return bool(self.found or self.containers)

    @property
    def free(self) -> bool:
        """Whether the card may be taken."""
        return self.complete and not self.held

    def __str__(self) -> str:
        parts = [str(holder) for holder in (*self.found, *self.containers)]
        if not self.complete:
            plural = "" if self.unseen == 1 else "es"
            unseen = (f"{self.unseen} process{plural} of other users",) if self.unseen else ()
            parts.append(f"held (could not look: {'; '.join((*unseen, *self.troubles))})")
        if not parts and self.absent:
            return f"nobody ({', '.join(self.absent)})"
        return ", ".join(parts) or "nobody"


def holders(
    cards: Sequence[Card],
    roots: Roots,
    *,
    simulated: bool,
    ask: Callable[[Sequence[Card], Roots], Containers] = containers.look,
) -> dict[str, Holders]:
    """Look who has these cards, by the cards' ids. Raises nothing: what could not be looked at is in the answer.

    The driver's own list (/proc/driver/tenstorrent/N/pids, tt-kmd 2.5.0) is complete, and so is a driver that nobody
    uses. Else every process's descriptors are compared with the nodes by device number: a container's node is another
    inode of the same device.
    ``ask`` tells about containers; a simulated card is in none.
    """
    if simulated:
        return _simulated(cards)
    answer: dict[str, Holders] = {}
    unlisted: list[Card] = []
    for card in cards:
        listed = _listed(card, roots.proc)
        if listed is None:
            unlisted.append(card)
        else:
            answer[card.id] = listed
    if unlisted and _idle(roots.sys):
        answer |= {card.id: Holders() for card in unlisted}
    elif unlisted:
        answer |= _scan(unlisted, roots.proc, foreign=True)
    told = ask(cards, roots)
    return {card.id: _with_containers(answer[card.id], card, told) for card in cards}


def _simulated(cards: Sequence[Card]) -> dict[str, Holders]:
    """Look who has plain files open: the kernel tells that nobody has, processes tell who has."""
    if not cards:
        return {}
    with one_at_a_time(os.path.dirname(cards[0].node)):  # noqa: PTH120 - asked before each slot is taken
        unheld = {card.id for card in cards if nobody_has(card.node)}
        rest = [card for card in cards if card.id not in unheld]
        return dict.fromkeys(unheld, Holders()) | (_scan(rest, PROC, foreign=False) if rest else {})


def _with_containers(seen: Holders, card: Card, told: Containers) -> Holders:
    having = tuple(container for container in told.found if container.has(card))
    return Holders(seen.found, having, seen.unseen, (*seen.troubles, *told.troubles), told.absent)


def _listed(card: Card, proc: Path) -> Holders | None:
    """Read the driver's list of who opened the node; None when the driver is older than that."""
    path = proc / "driver" / "tenstorrent" / str(card.number) / "pids"
    try:
        listed = sorted({int(line) for line in path.read_text(encoding="ascii").split()})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return Holders(troubles=(f"cannot read {path}: {error}",))
    return Holders(tuple(_opener(pid, card, proc) for pid in listed))


def _idle(sys: Path) -> bool:
    """Whether no node of any card is open: each open file is a reference to the module (fops_get, fs/char_dev.c)."""
    try:
        return int((sys / "module" / "tenstorrent" / "refcnt").read_text(encoding="ascii")) == 0
    except (OSError, ValueError):
        return False  # built into the kernel, or one that never unloads: processes must tell


def _opener(pid: int, card: Card, proc: Path) -> Holder:
    if pid == 0:
        return Holder(0, "")
    try:
        keys = {_key(Path(card.node).stat()): card.id}
    except OSError:
        keys = {}
    # The list names who opened the node, and a descriptor that was inherited outlives that process (and its number).
    gone = bool(keys) and _held(f"{proc}/{pid}/fd", keys) == set()
    return Holder(pid, "" if gone else command(pid, proc), passed_on=gone)


def _scan(cards: Sequence[Card], proc: Path, *, foreign: bool) -> dict[str, Holders]:
    """Look into every process, once for all cards.

    ``foreign``: a process of another user that hides its descriptors counts as unseen. Simulated nodes are files of one
    user's own, which protect nothing, so there it does not.
    """
    troubles: dict[str, list[str]] = {card.id: [] for card in cards}
    wanted: dict[_Key, str] = {}
    for card in cards:
        try:
            wanted[_key(Path(card.node).stat())] = card.id
        except OSError as error:
            troubles[card.id].append(f"cannot look at {card.node}: {error.strerror}")
    found: dict[str, list[Holder]] = {card.id: [] for card in cards}
    unseen = 0
    try:
        there = pids(proc)
    except HostError as error:
        there = []
        foreign_troubles = [error.message]
    else:
        foreign_troubles = hidden(there, proc) if foreign else []
    for pid in there:
        held = _held(f"{proc}/{pid}/fd", wanted)
        if held is None:
            unseen += foreign
            continue
        for card_id in held:
            found[card_id].append(Holder(pid, command(pid, proc)))
    return {
        card.id: Holders(tuple(found[card.id]), (), unseen, (*troubles[card.id], *foreign_troubles)) for card in cards
    }


def _key(seen: os.stat_result) -> _Key:
    """Name what is open: a character device by its number, else the file itself."""
    if stat.S_ISCHR(seen.st_mode):
        return seen.st_rdev
    return (seen.st_dev, seen.st_ino)


def _held(folder: str, wanted: Mapping[_Key, str]) -> set[str] | None:
    """Find which of the nodes a process has open; None when that cannot be seen.

    This is called for each process of the host: one stat for each descriptor, and names relative to the open folder,
    take half the time of paths and of asking for the link first.
    """
    held: set[str] = set()
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return held  # ended meanwhile
    except OSError:
        return None
    try:
        for name in os.listdir(handle):  # noqa: PTH208 - pathlib has no way with a descriptor
            try:
                card_id = wanted.get(_key(os.stat(name, dir_fd=handle)))
            except (FileNotFoundError, ProcessLookupError):
                continue  # closed meanwhile
            if card_id is not None:
                held.add(card_id)
    except ProcessLookupError:
        return held  # ended meanwhile
    except OSError:
        # The link of a process that ended just now is told to be forbidden (proc_pid_get_link, fs/proc/base.c).
        return None if os.path.exists(os.path.dirname(folder)) else held  # noqa: PTH110, PTH120
    finally:
        os.close(handle)
    return held
