"""The inventory over whole fixture hosts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from card_trees import HOSTS, host

from ttstack.host.cards import beating, hugepages_missing, inventory, reserved_hugepages
from ttstack.host.errors import HostError
from ttstack.host.types import Card, Roots

if TYPE_CHECKING:
    from pathlib import Path

P150A = Card(
    node=str(HOSTS / "one-p150a/dev/tenstorrent/0"),
    number=0,
    bdf="0000:01:00.0",
    serial="0000040511940a01",
    asic_id="5311a70c04e90a01",
    board="p150a",
    shared_serial=False,
    firmware="19.13.1.0",
    driver="2.10.1",
    numa_node=None,
    iommu="DMA-FQ",
    hugepages_needed=False,
    heartbeat=90311,
)


@pytest.fixture
def copy(tmp_path: Path) -> Roots:
    """One p150a, to be changed."""
    shutil.copytree(HOSTS / "one-p150a", tmp_path / "host", symlinks=True)
    return Roots(tmp_path / "host/sys", tmp_path / "host/proc", tmp_path / "host/dev")


def test_no_card() -> None:
    assert inventory(host("none")) == ()
    assert beating((), host("none")) == {}


def test_one_card_tells_everything() -> None:
    assert inventory(host("one-p150a")) == (P150A,)
    assert hugepages_missing((P150A,), host("one-p150a")) == 0


def test_nodes_swapped_against_bdf_order() -> None:
    roots = host("two-p150a-swapped")
    cards = inventory(roots)
    assert [(card.bdf, card.number, card.id, card.numa_node) for card in cards] == [
        ("0000:41:00.0", 1, "0000040511940b01", 0),
        ("0000:c1:00.0", 0, "0000040511940b02", 1),
    ]
    assert [card.node for card in cards] == [str(roots.dev / "tenstorrent" / number) for number in "10"]
    assert [card.firmware for card in cards] == ["19.13.1.0", "19.6.0.0"]
    assert [card.asic_id for card in cards] == ["5311a70c04e90b01", "5311a70c04e90b02"]
    assert [(card.iommu, card.hugepages_needed) for card in cards] == [("identity", True)] * 2
    assert reserved_hugepages(roots) == 1
    assert hugepages_missing(cards, roots) == 1


def test_two_chips_of_a_p300_tell_one_serial_and_are_two_slots() -> None:
    cards = inventory(host("p300"))
    assert [(card.serial, card.shared_serial, card.board) for card in cards] == [
        ("0000046511940c01", True, "p300c")
    ] * 2
    assert [card.id for card in cards] == ["0000:03:00.0", "0000:04:00.0"]
    assert [card.hugepages_needed for card in cards] == [False, False]  # "DMA" itself translates too


def test_a_chip_of_a_p300_keeps_its_slot_when_the_other_is_away(tmp_path: Path) -> None:
    shutil.copytree(HOSTS / "p300", tmp_path / "host", symlinks=True)
    (tmp_path / "host/sys/class/tenstorrent/tenstorrent!1").unlink()
    (tmp_path / "host/dev/tenstorrent/1").unlink()
    (card,) = inventory(Roots(tmp_path / "host/sys", tmp_path / "host/proc", tmp_path / "host/dev"))
    assert card.id == "0000:03:00.0"


def test_an_old_driver_tells_less() -> None:
    roots = host("old-driver")
    (card,) = inventory(roots)
    assert (card.driver, card.serial, card.asic_id, card.heartbeat) == ("2.4.1", "0000040511940d01", "", None)
    assert (card.iommu, card.hugepages_needed) == ("", True)  # no IOMMU at all
    assert hugepages_missing((card,), roots) == 0
    assert beating((card,), roots, sleep=lambda _: pytest.fail("nothing to wait for")) == {card.id: None}


def test_what_is_for_people_hides_no_card_when_it_cannot_be_read(copy: Roots) -> None:
    entry = copy.sys / "class/tenstorrent/tenstorrent!0"
    for name in ("tt_heartbeat", "tt_fw_bundle_ver"):
        (entry / name).unlink()
        (entry / name).mkdir()  # reading a directory fails, for root too
    (entry / "device/iommu_group/type").unlink()
    (card,) = inventory(copy)
    assert (card.heartbeat, card.firmware, card.iommu, card.hugepages_needed) == (None, "", "", True)


def test_a_serial_that_cannot_be_read_is_an_error_as_it_names_the_slot(copy: Roots) -> None:
    serial = copy.sys / "class/tenstorrent/tenstorrent!0/tt_serial"
    serial.unlink()
    serial.mkdir()
    with pytest.raises(HostError, match="tt_serial"):
        inventory(copy)


def test_a_host_without_hugepages_of_that_size_lacks_them_all(copy: Roots) -> None:
    shutil.rmtree(copy.sys / "kernel/mm")
    cards = (replace(P150A, hugepages_needed=True), replace(P150A, bdf="0000:02:00.0"))
    assert reserved_hugepages(copy) is None
    assert hugepages_missing(cards, copy) == 1


def test_a_counter_that_changes_is_a_heartbeat(copy: Roots) -> None:
    (card,) = inventory(copy)
    beats = copy.sys / "class/tenstorrent/tenstorrent!0/tt_heartbeat"
    naps = []

    def sleep(_: float) -> None:
        naps.append(0)
        if len(naps) == 3:
            beats.write_text("90312\n")

    assert beating((card,), copy, clock=lambda: 0.0, sleep=sleep) == {card.id: True}
    assert len(naps) == 3


@pytest.mark.parametrize("gone", [False, True])
def test_a_counter_that_stands_still_or_went_away_is_none(copy: Roots, gone: bool) -> None:  # noqa: FBT001 - a case
    (card,) = inventory(copy)
    if gone:
        (copy.sys / "class/tenstorrent/tenstorrent!0/tt_heartbeat").unlink()
    now = [0.0]

    def sleep(seconds: float) -> None:
        assert now[0] < 10, "waits for ever"
        now[0] += seconds

    assert beating((card,), copy, clock=lambda: now[0], sleep=sleep) == {card.id: False}
    assert 0.5 < now[0] < 0.7
