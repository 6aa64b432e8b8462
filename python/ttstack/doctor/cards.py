"""Cards: is the firmware alive, do versions fit, can the engine give them memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ttstack.doctor import versions
from ttstack.doctor.codes import finding
from ttstack.host.cards import beating, hugepages_missing, inventory, reserved_hugepages
from ttstack.host.errors import HostError
from ttstack.host.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ttstack.doctor.types import Finding
    from ttstack.host.types import Card, Places, Roots

_VENDOR = "0x1e52"  # Tenstorrent
_GIB = "kernel/mm/hugepages/hugepages-1048576kB"


@dataclass(frozen=True, slots=True)
class CardsSeen:
    """What was read of a host's cards."""

    cards: tuple[Card, ...] = ()
    alive: dict[str, bool | None] | None = None  # by card id; None: nobody asked, a simulated card has no firmware
    unbound: tuple[str, ...] = ()  # BDFs of devices without a driver
    nodeless: tuple[str, ...] = ()  # BDFs of devices whose driver gave them no node that is seen here
    driver: bool = False  # whether tt-kmd is loaded
    in_use: int = 0  # open files of tt-kmd, as far as its module tells
    hugepages: int | None = None  # of 1 GiB, reserved
    hugepages_free: int | None = None
    hugepages_missing: int = 0
    mounted: bool | None = None  # whether 1 GiB hugepages are mounted; None: not told


def look(places: Places) -> CardsSeen:
    """Look at a host's cards. The heartbeat is read twice, a moment apart. Raises HostError."""
    roots = places.roots
    cards = inventory(roots)
    if places.simulated:
        return CardsSeen(cards)
    unbound, nodeless = _on_bus(roots.sys, {card.bdf for card in cards})
    module = roots.sys / "module" / "tenstorrent"
    return CardsSeen(
        cards=cards,
        alive=beating(cards, roots),
        unbound=unbound,
        nodeless=nodeless,
        driver=module.is_dir(),
        in_use=_count(module / "refcnt") or 0,
        hugepages=reserved_hugepages(roots),
        hugepages_free=_count(roots.sys / _GIB / "free_hugepages"),
        hugepages_missing=hugepages_missing(cards, roots),
        mounted=_mounted(roots),
    )


def _on_bus(sys: Path, known: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        devices = sorted((sys / "bus/pci/devices").iterdir())
    except OSError:
        return (), ()  # no PCI bus here
    ours = [device for device in devices if _tell(device / "vendor") == _VENDOR and device.name not in known]
    bound = {device.name for device in ours if (device / "tenstorrent").is_dir()}
    return tuple(device.name for device in ours if device.name not in bound), tuple(sorted(bound))


def _tell(path: Path) -> str:
    try:
        return read_text(path) or ""
    except HostError:
        return ""


def _count(path: Path) -> int | None:
    text = _tell(path)
    return int(text) if text.isdigit() else None


def _mounted(roots: Roots) -> bool | None:
    text = read_text(roots.proc / "self" / "mounts")
    if text is None:
        return None
    rows = [line.split() for line in text.splitlines()]
    return any(row[2:3] == ["hugetlbfs"] and "pagesize=1024M" in row[3].split(",") for row in rows if len(row) > 3)  # noqa: PLR2004 - source, place, kind, options (fstab(5))


def judge(seen: CardsSeen, *, simulated: bool, held: bool | None) -> Iterator[Finding]:
    """Say what to make of it. ``held``: whether somebody has one of the cards; None when that is not known."""
    if simulated:
        for card in seen.cards:
            yield finding("cards.simulated", f"{card.node} is a simulated {card.board}", subject=card.id)
        return
    for bdf in seen.unbound:
        text = f"the Tenstorrent device {bdf} has no driver"
        yield finding("cards.unbound", text, subject=bdf)
    for bdf in seen.nodeless:
        yield finding("cards.no-node", f"the card {bdf} has no node here", subject=bdf)
    if not seen.cards:
        if not seen.unbound and not seen.nodeless:
            yield finding("cards.none", "this host has no cards")
        return
    for card in seen.cards:
        yield from _card(card, (seen.alive or {}).get(card.id))
    yield from _driver(seen.cards[0].driver)
    told = sorted({card.firmware for card in seen.cards if card.firmware})
    if len(told) > 1:
        yield finding("cards.firmware-mixed", f"the cards have different firmware: {', '.join(told)}")
    yield from _dma(seen, held=held)


def _card(card: Card, alive: bool | None) -> Iterator[Finding]:  # noqa: FBT001 - three answers
    name = f"{card.board} {card.bdf}"
    faults: list[Finding] = []
    if alive is False:
        faults.append(finding("cards.heartbeat-stopped", f"{name}: its firmware's heartbeat stands still"))
    elif alive is None:
        faults.append(finding("cards.heartbeat-untold", f"{name}: no heartbeat is told"))
    version, chip = versions.firmware(card.firmware), versions.chip(card.board)
    if version is None:
        faults.append(finding("cards.firmware-untold", f"{name}: its firmware's version is not told"))
    elif version < versions.FIRMWARE_OPENED.get(chip, (0, 0, 0)):
        text = f"{name}: firmware {card.firmware} is too old for the engine, which wants {_dots(chip)} or newer"
        faults.append(finding("cards.firmware-unsupported", text))
    elif version < versions.FIRMWARE_ASKED.get(chip, (0, 0, 0)):
        asked = ".".join(map(str, versions.FIRMWARE_ASKED[chip]))
        text = f"{name}: firmware {card.firmware} is older than the {asked} that tt-metal asks for"
        faults.append(finding("cards.firmware-old", text))
    if faults:
        yield from (replace(fault, subject=card.id) for fault in faults)
    else:
        yield finding("cards.healthy", f"{name}: firmware {card.firmware} is alive", subject=card.id)


def _dots(chip: str) -> str:
    return ".".join(map(str, versions.FIRMWARE_OPENED[chip]))


def _driver(text: str) -> Iterator[Finding]:
    version = versions.parse(text)
    if version is None:
        yield finding("cards.driver-untold", "tt-kmd does not tell its version")
    elif version < versions.DRIVER_OPENED:
        yield finding(
            "cards.driver-unsupported", f"tt-kmd {text} is too old for the engine, which wants 2.0.0 or newer"
        )
    elif version < versions.DRIVER_ASKED:
        yield finding("cards.driver-old", f"tt-kmd {text} is older than the 2.5.0 that tt-metal asks for")
    elif version < versions.DRIVER_UNPINS:
        yield finding("cards.driver-leaks", f"tt-kmd {text} may leave pages pinned when a pin fails")


def _dma(seen: CardsSeen, *, held: bool | None) -> Iterator[Finding]:
    needing: Sequence[Card] = [card for card in seen.cards if card.hugepages_needed]
    kinds = ", ".join(dict.fromkeys(card.iommu or "no IOMMU" for card in seen.cards))
    if not needing:
        yield finding("cards.dma", f"an IOMMU translates for the cards ({kinds}); no hugepages are needed")
        return
    wanted = len(needing)
    if seen.hugepages_missing:
        text = f"the cards need {wanted} hugepage(s) of 1 GiB ({kinds}), and {seen.hugepages or 0} are reserved"
        hint = f"boot with hugepagesz=1G hugepages={wanted}, or with an IOMMU that translates (without iommu=pt)"
        yield finding("cards.hugepages-missing", text, hint=hint)
    elif seen.mounted is False:
        yield finding("cards.hugepages-unmounted", "1 GiB hugepages are reserved, and mounted nowhere")
    elif held is False and seen.hugepages_free is not None and seen.hugepages_free < wanted:
        text = f"of {seen.hugepages} hugepages of 1 GiB {seen.hugepages_free} are free, though nobody has a card"
        yield finding("cards.hugepages-stale", text)
    else:
        yield finding("cards.dma", f"{seen.hugepages} hugepages of 1 GiB are reserved for {wanted} card(s) ({kinds})")
