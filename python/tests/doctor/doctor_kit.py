"""The made-up hosts of tests/fixtures/doctor, alone or put on top of one with cards."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from ttstack.doctor.cards import CardsSeen
from ttstack.host.types import Card, Places, Roots

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PAGE = 4096
CARD = Card("/dev/tenstorrent/0", 0, "0000:01:00.0", "0000040511940001", "", "p150a", firmware="19.13.1.0")


def roots_of(name: str) -> Roots:
    """Say where a fixture's trees are."""
    folder = FIXTURES / "doctor" / name
    assert folder.is_dir(), f"no fixture {name}"
    return trees(folder)


def trees(folder: Path) -> Roots:
    return Roots(folder / "sys", folder / "proc", folder / "dev")


def host(folder: Path, name: str, cards: str = "one-p150a") -> Places:
    """Make a host of a fixture with cards and one of the doctor's."""
    shutil.copytree(FIXTURES / "cards" / cards, folder / "host", symlinks=True)
    shutil.copytree(FIXTURES / "doctor" / name, folder / "host", symlinks=True, dirs_exist_ok=True)
    roots = trees(folder / "host")
    return Places(folder / "state", folder / "locks", folder / "cache", roots, simulated=False)


def program(folder: Path, name: str, text: str, code: int = 0) -> None:
    """Put a program on PATH that prints a text and ends."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.txt"
    file.write_text(text)
    script = f'#!/bin/sh\nwhile IFS= read -r line; do printf "%s\\n" "$line"; done < {file}\nexit {code}\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def seen(**other: object) -> CardsSeen:
    """Make a host with one healthy card."""
    card = replace(CARD, driver="2.10.1", iommu="DMA-FQ")
    return CardsSeen((card,), {card.id: True}, driver=True, **other)  # type: ignore[arg-type]
