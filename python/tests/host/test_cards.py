from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ttstack.host.cards import inventory
from ttstack.host.errors import HostError
from ttstack.host.types import Roots

if TYPE_CHECKING:
    from pathlib import Path


def add_card(tree: Path, number: int, bdf: str, *, serial: str = "", board: str = "0x0040") -> Path:
    pci = tree / "sys/devices" / bdf
    pci.mkdir(parents=True)
    (pci / "subsystem_device").write_text(f"{board}\n")
    entry = tree / "sys/class/tenstorrent" / f"tenstorrent!{number}"
    entry.mkdir(parents=True)
    (entry / "device").symlink_to(pci)
    if serial:
        (entry / "tt_serial").write_text(f"{serial}\n")
    node = tree / "dev/tenstorrent" / str(number)
    node.parent.mkdir(parents=True, exist_ok=True)
    node.write_text("")
    return entry


def roots(tree: Path) -> Roots:
    return Roots(tree / "sys", tree / "proc", tree / "dev")


def test_a_host_without_cards_has_none(tmp_path: Path) -> None:
    assert inventory(roots(tmp_path)) == ()


def test_cards_are_sorted_by_bdf_and_not_by_node_number(tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:02:00.0", serial="00000401AAAA0002")
    add_card(tmp_path, 1, "0000:01:00.0", serial="00000401AAAA0001")
    first, second = inventory(roots(tmp_path))
    assert (first.bdf, first.number, first.id) == ("0000:01:00.0", 1, "00000401aaaa0001")
    assert (second.bdf, second.number, second.board) == ("0000:02:00.0", 0, "p150a")


@pytest.mark.parametrize("prefix", ["", "0x"])
def test_the_folder_by_id_is_no_card_and_tells_the_asic(tmp_path: Path, prefix: str) -> None:
    add_card(tmp_path, 0, "0000:01:00.0")
    names = tmp_path / "dev/tenstorrent/by-id"
    names.mkdir()
    (names / f"blackhole-{prefix}5311a70c04e90000").symlink_to("../0")
    (card,) = inventory(roots(tmp_path))
    assert card.asic_id == "5311a70c04e90000"
    assert card.id == card.bdf  # no serial: an old driver


def test_board_comes_from_the_subsystem_id(tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:01:00.0", board="0x0043")
    add_card(tmp_path, 1, "0000:02:00.0", board="0x9999")
    assert [card.board for card in inventory(roots(tmp_path))] == ["p100a", "unknown"]


@pytest.mark.parametrize("board", ["0x0045", "0x9999"])
def test_two_chips_of_one_board_are_two_slots(tmp_path: Path, board: str) -> None:
    add_card(tmp_path, 0, "0000:01:00.0", serial="00000441aaaa0001", board=board)
    add_card(tmp_path, 1, "0000:02:00.0", serial="00000441aaaa0001", board=board)
    assert [card.id for card in inventory(roots(tmp_path))] == ["0000:01:00.0", "0000:02:00.0"]


def test_a_card_without_a_node_here_is_left_out(tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:01:00.0")
    add_card(tmp_path, 1, "0000:02:00.0")
    (tmp_path / "dev/tenstorrent/1").unlink()
    assert [card.number for card in inventory(roots(tmp_path))] == [0]


def test_a_node_that_sysfs_does_not_know_is_an_error(tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:01:00.0")
    (tmp_path / "dev/tenstorrent/7").write_text("")
    with pytest.raises(HostError, match="no card 7"):
        inventory(roots(tmp_path))


def test_what_is_there_but_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    entry = add_card(tmp_path, 0, "0000:01:00.0")
    (entry / "tt_serial").mkdir()  # reading a directory fails for root too
    with pytest.raises(HostError, match="tt_serial"):
        inventory(roots(tmp_path))


def test_a_device_link_that_is_no_pci_device_is_an_error(tmp_path: Path) -> None:
    entry = add_card(tmp_path, 0, "0000:01:00.0")
    (entry / "device").unlink()
    (entry / "device").symlink_to(tmp_path)
    with pytest.raises(HostError, match="PCI"):
        inventory(roots(tmp_path))
