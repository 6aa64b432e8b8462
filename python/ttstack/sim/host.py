"""A simulated inventory of cards: the kernel's trees as files, read by the same code as the real ones."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from ttstack.host.types import Roots
from ttstack.sim.errors import SimError

_MAX_CARDS = 32  # the driver's own max_devices
_P150A = 0x40  # the board's kind in a board id, and its PCI subsystem device id


def _bdf(number: int) -> str:
    return f"0000:{number + 1:02x}:00.0"


def _serial(number: int) -> str:
    return f"{(_P150A << 36) | (0x511940000 + number):016x}"


def _asic_id(number: int) -> str:
    return f"{0x5311A70C04E90000 + number:016x}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def _card(sys: Path, number: int) -> None:
    bdf = _bdf(number)
    pci = sys / "devices" / "pci0000:00" / f"0000:00:{number + 1:02x}.0" / bdf
    for name, text in {
        "vendor": "0x1e52",
        "device": "0xb140",
        "subsystem_vendor": "0x1e52",
        "subsystem_device": f"0x{_P150A:04x}",
        "class": "0x120000",
        "numa_node": "0",
        "current_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
    }.items():
        _write(pci / name, f"{text}\n")
    group = sys / "kernel" / "iommu_groups" / str(number + 1)
    _write(group / "type", "DMA-FQ\n")
    _link(pci / "iommu_group", group)
    _link(sys / "bus" / "pci" / "devices" / bdf, pci)
    node = pci / "tenstorrent" / f"tenstorrent!{number}"
    for name, text in {
        "tt_serial": _serial(number),
        "tt_card_type": "p150a",
        "tt_asic_id": _asic_id(number),
        "tt_fw_bundle_ver": "19.13.1.0",
        "tt_m3app_fw_ver": "0.22.0.0",
        "tt_heartbeat": "1024",
        "tt_therm_trip_count": "0",
        "tt_aiclk": "800",
        "tt_axiclk": "900",
        "tt_arcclk": "800",
    }.items():
        _write(node / name, f"{text}\n")
    _link(node / "device", pci)
    _link(sys / "class" / "tenstorrent" / node.name, node)


def _sys(root: Path, cards: int) -> None:
    for number in range(cards):
        _card(root, number)
    _write(root / "module" / "tenstorrent" / "version", "2.10.1\n")
    _write(root / "kernel" / "mm" / "hugepages" / "hugepages-1048576kB" / "nr_hugepages", "0\n")


def _proc(root: Path, cards: int) -> None:
    for number in range(cards):
        _write(root / "driver" / "tenstorrent" / str(number) / "pids", "")


def _dev(root: Path, cards: int) -> None:
    (root / "tenstorrent" / "by-id").mkdir(parents=True)
    for number in range(cards):
        node = root / "tenstorrent" / str(number)
        _write(node, "")
        _link(root / "tenstorrent" / "by-id" / f"blackhole-{_asic_id(number)}", node)


def _put(built: Path, place: Path) -> None:
    """Rename a finished tree to its place; when another process was first, its tree is the same and stays."""
    try:
        built.rename(place)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise


def _count(dev: Path) -> int:
    return sum(entry.name.isdigit() for entry in (dev / "tenstorrent").iterdir())


def make_host(folder: Path, cards: int = 2) -> Roots:
    """Make the trees of a host with that many p150a cards in ``folder`` (sys, proc, dev); return where they are.

    A tree that is there stays as it is; several processes may do this at once. Raises SimError when ``folder`` has
    another number of cards, or cannot be written.
    """
    if not 0 <= cards <= _MAX_CARDS:
        raise SimError(f"a simulated host has 0 to {_MAX_CARDS} cards, not {cards}")
    roots = Roots(sys=folder / "sys", proc=folder / "proc", dev=folder / "dev")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not all(tree.is_dir() for tree in (roots.sys, roots.proc, roots.dev)):
            beside = Path(tempfile.mkdtemp(prefix=".building-", dir=folder))
            try:
                # dev comes last: a host without it has no cards yet, whatever the other trees say.
                for build, place in ((_sys, roots.sys), (_proc, roots.proc), (_dev, roots.dev)):
                    built = beside / place.name
                    built.mkdir()
                    build(built, cards)
                    _put(built, place)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        there = _count(roots.dev)
    except OSError as error:
        raise SimError(f"cannot make a simulated host in {folder}: {error.strerror}") from error
    if there != cards:
        raise SimError(
            f"the simulated host in {folder} has {there} cards, not {cards}",
            hint="choose another folder, or remove this one while nothing uses it",
        )
    return roots
