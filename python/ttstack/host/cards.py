"""Which cards there are, from sysfs and the names of nodes alone: no device is opened (an open changes its power)."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.files import read_text
from ttstack.host.types import Card

if TYPE_CHECKING:
    from pathlib import Path

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

_CLASS_ENTRY = re.compile(r"tenstorrent!(\d+)")  # sysfs writes the slash of tenstorrent/0 as !
_BDF = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def inventory(roots: Roots) -> tuple[Card, ...]:
    """List this host's cards, sorted by BDF (the order in which UMD counts them).

    A card that sysfs knows but that has no node here (a container sees the host's sysfs) is left out. Raises HostError
    when something is there that cannot be read, or a node that sysfs does not explain.
    """
    nodes = _nodes(roots.dev / "tenstorrent")
    classes = _class_entries(roots.sys / "class" / "tenstorrent")
    strange = sorted(nodes.keys() - classes.keys())
    if strange:
        raise HostError(
            f"{nodes[strange[0]]} exists, but sysfs has no card {strange[0]} under {roots.sys / 'class/tenstorrent'}",
            hint="the driver may be reloading; look at: dmesg | grep tenstorrent",
        )
    by_id = _by_id(roots.dev / "tenstorrent" / "by-id")
    found = [_card(number, nodes[number], classes[number], by_id) for number in sorted(nodes)]
    shared = {serial for serial, times in Counter(card.serial for card in found).items() if times > 1}
    # Both chips of a p300 tell the board's serial. A slot is one chip, so such a serial names no slot: BDF does.
    cards = [replace(card, serial="") if card.serial in shared else card for card in found]
    return tuple(sorted(cards, key=lambda card: card.bdf))


def _list(path: Path) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - names are what is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise HostError(f"cannot list {path}: {error.strerror}") from error


def _nodes(folder: Path) -> dict[int, Path]:
    # Beside the nodes lies the folder by-id (tt-kmd 2.6.0), so only digits count.
    return {int(name): folder / name for name in _list(folder) if name.isascii() and name.isdigit()}


def _class_entries(folder: Path) -> dict[int, Path]:
    matches = ((_CLASS_ENTRY.fullmatch(name), name) for name in _list(folder))
    return {int(match[1]): folder / name for match, name in matches if match}


def _by_id(folder: Path) -> dict[int, str]:
    found: dict[int, str] = {}
    for name in sorted(_list(folder)):
        try:
            target = str((folder / name).readlink())
        except OSError:
            continue  # not a link: none of udev's names
        number = target.rpartition("/")[2]
        if number.isascii() and number.isdigit():
            found[int(number)] = name
    return found


def _card(number: int, node: Path, entry: Path, by_id: dict[int, str]) -> Card:
    try:
        device = (entry / "device").resolve(strict=True)
    except OSError as error:
        raise HostError(f"cannot follow {entry / 'device'}: {error.strerror}") from error
    if _BDF.fullmatch(device.name) is None:
        raise HostError(f"{entry / 'device'} does not lead to a PCI device but to {device}")
    asic = read_text(entry / "tt_asic_id") or by_id.get(number, "").rpartition("-")[2]
    return Card(
        node=str(node),
        number=number,
        bdf=device.name,
        serial=(read_text(entry / "tt_serial") or "").lower(),
        asic_id=asic.lower().removeprefix("0x"),
        board=_board(device, entry),
    )


def _board(device: Path, entry: Path) -> str:
    text = read_text(device / "subsystem_device")
    try:
        number = int(text or "", 16)
    except ValueError:
        number = -1
    return BOARDS.get(number) or read_text(entry / "tt_card_type") or "unknown"
