"""Which cards there are, from sysfs and the names of nodes alone: no device is opened (an open changes its power)."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.types import Card

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ttstack.host.types import Roots

BOARDS: dict[int, str] = {
    0x14: "n300",
    0x18: "n150",
    0x35: "galaxy-wormhole",
    0x36: "p100",
    0x40: "p150a",
    0x41: "p150b",
    0x42: "p150c",
    0x43: "p100a",
    0x44: "p300b",
    0x45: "p300a",
    0x46: "p300c",
    0x47: "galaxy-blackhole",
}
"""PCI subsystem device id -> board; it is the UPI part of the board id (tt-kmd, tt-umd ``board_upi_map``)."""
_MANY_CHIPS = frozenset({"p300a", "p300b", "p300c", "galaxy-blackhole"})  # boards with several nodes and one serial
_HUGEPAGES = "kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
_PAGE = 4096  # bytes
_BEAT_S = 0.6  # six periods of the firmware's telemetry

_CLASS_ENTRY = re.compile(r"tenstorrent!(\d+)")  # sysfs writes the slash of tenstorrent/0 as !
_BDF = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def inventory(roots: Roots) -> tuple[Card, ...]:
    """List this host's cards, sorted by BDF (the order in which UMD counts them).

    A card that sysfs knows but that has no node here (a container sees the host's sysfs) is left out. Raises HostError
    when something is there that cannot be read, or a node that sysfs does not explain.
    """
    nodes = _nodes(f"{roots.dev}/tenstorrent")
    classes = _class_entries(f"{roots.sys}/class/tenstorrent")
    strange = sorted(nodes.keys() - classes.keys())
    if strange:
        raise HostError(
            f"{nodes[strange[0]]} exists, but sysfs has no card {strange[0]} under {roots.sys / 'class/tenstorrent'}",
            hint="the driver may be reloading; look at: dmesg | grep tenstorrent",
        )
    seen = {number: _entry_of(number, path, nodes.get(number)) for number, path in classes.items()}
    by_id: dict[int, str] | None = None
    driver = _tell(f"{roots.sys}/module/tenstorrent/version") or ""
    times = Counter(serial for serial, _ in seen.values())
    found = []
    for number, (serial, card) in seen.items():
        if card is None:
            continue
        # Not the count alone: a chip that is away for a moment must not rename the slot of the other.
        shared = bool(serial) and (times[serial] > 1 or card.board in _MANY_CHIPS)
        asic = card.asic_id
        if not asic:
            by_id = _by_id(f"{roots.dev}/tenstorrent/by-id") if by_id is None else by_id
            asic = by_id.get(number, "").rpartition("-")[2].removeprefix("0x")
        found.append(replace(card, serial=serial, shared_serial=shared, asic_id=asic, driver=driver))
    return tuple(sorted(found, key=lambda card: card.bdf))


def reserved_hugepages(roots: Roots) -> int | None:
    """Count the 1 GiB hugepages that the host has reserved; None when its kernel has none of that size."""
    return _number(_tell(f"{roots.sys}/{_HUGEPAGES}"))


def hugepages_missing(cards: Sequence[Card], roots: Roots) -> int:
    """Say how many 1 GiB hugepages the host lacks: UMD wants one for each card that needs them."""
    needed = sum(card.hugepages_needed for card in cards)
    return max(0, needed - (reserved_hugepages(roots) or 0))


def beating(
    cards: Sequence[Card],
    roots: Roots,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, bool | None]:
    """Say for each card (by id) whether its firmware lives: its counter changes (tt-kmd, docs/sysfs-attributes.md).

    Waits at most 0.6 s, and not at all when no card tells a counter; such a card's answer is None.
    """
    answer: dict[str, bool | None] = {card.id: None if card.heartbeat is None else False for card in cards}
    end = clock() + _BEAT_S
    while True:
        for card in cards:
            if answer[card.id] is False:
                now = _number(_tell(f"{_entry(card.number, roots)}/tt_heartbeat"))
                answer[card.id] = now is not None and now != card.heartbeat
        if False not in answer.values() or clock() >= end:
            return answer
        sleep(0.02)


def _list(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - names are what is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise HostError(f"cannot list {path}: {error.strerror}") from error


def _nodes(folder: str) -> dict[int, str]:
    # Beside the nodes lies the folder by-id (tt-kmd 2.6.0), so only digits count.
    return {int(name): f"{folder}/{name}" for name in _list(folder) if name.isascii() and name.isdigit()}


def _class_entries(folder: str) -> dict[int, str]:
    matches = ((_CLASS_ENTRY.fullmatch(name), name) for name in _list(folder))
    return {int(match[1]): f"{folder}/{name}" for match, name in matches if match}


def _by_id(folder: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for name in sorted(_list(folder)):
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115 - as below
        except OSError:
            continue  # not a link: none of udev's names
        number = target.rpartition("/")[2]
        if number.isascii() and number.isdigit():
            found[int(number)] = name
    return found


def _entry(number: int, roots: Roots) -> str:
    return f"{roots.sys}/class/tenstorrent/tenstorrent!{number}"


@contextmanager
def _opened(path: str, within: int | None = None) -> Iterator[int]:
    """Open a folder. This room is asked before each slot is taken, so it goes without pathlib and long paths."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def _entry_of(number: int, path: str, node: str | None) -> tuple[str, Card | None]:
    """Read what is the card's own, its serial apart, as ``inventory`` adds what takes a look at all of them.

    A card without a node here tells its serial alone.
    """
    try:
        with _opened(path) as entry:
            serial = (_read("tt_serial", entry, path) or "").lower()
            return serial, None if node is None else _card(number, node, entry, path)
    except OSError as error:
        raise HostError(f"cannot look into {path}: {error.strerror}") from error


def _card(number: int, node: str, entry: int, path: str) -> Card:
    try:
        with _opened("device", entry) as device:
            place = os.readlink(f"/proc/self/fd/{device}")  # noqa: PTH115 - where the kernel says that it leads
            bdf = place.rpartition("/")[2]
            if _BDF.fullmatch(bdf) is None:
                raise HostError(f"{path}/device does not lead to a PCI device but to {place}")
            numa = _number(_tell("numa_node", device))
            iommu = _tell("iommu_group/type", device) or ""
            board = BOARDS.get(_number(_tell("subsystem_device", device), 16) or -1)
    except OSError as error:
        raise HostError(f"cannot follow {path}/device: {error.strerror}") from error
    return Card(
        node=node,
        number=number,
        bdf=bdf,
        serial="",
        asic_id=(_tell("tt_asic_id", entry) or "").lower().removeprefix("0x"),
        board=board or _tell("tt_card_type", entry) or "unknown",
        firmware=_tell("tt_fw_bundle_ver", entry) or "",
        numa_node=numa if numa is not None and numa >= 0 else None,  # -1: none (kernel, sysfs-bus-pci)
        iommu=iommu,
        # UMD takes an IOMMU for one that translates only when the group's type says DMA, DMA-FQ, ... (tt-umd).
        hugepages_needed=not iommu.startswith("DMA"),
        heartbeat=_number(_tell("tt_heartbeat", entry)),
    )


def _read(name: str, within: int | None = None, path: str = "") -> str | None:
    """Read a small file, stripped; None when there is none. Raises HostError: not to know is not the same as nothing.

    One read tells all of it: an attribute of sysfs is at most a page (kernel, sysfs.rst).
    """
    try:
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=within)
        try:
            return os.read(handle, _PAGE).decode("utf-8", "replace").strip()
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(f"cannot read {path}/{name}: {error.strerror}") from error


def _tell(name: str, within: int | None = None) -> str | None:
    """Read what is for people only; a card that is being reset fails such reads, and must not hide the others."""
    try:
        return _read(name, within)
    except HostError:
        return None


def _number(text: str | None, base: int = 10) -> int | None:
    try:
        return int(text or "", base)
    except ValueError:
        return None
