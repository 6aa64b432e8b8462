from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from doctor_kit import CARD, FIXTURES, seen, trees

from ttstack.doctor import cards, versions
from ttstack.host.types import Places

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.doctor.cards import CardsSeen


def put(folder: Path, name: str) -> Places:
    shutil.copytree(FIXTURES / "cards" / name, folder / "host", symlinks=True)
    return Places(folder / "state", folder / "locks", folder / "cache", trees(folder / "host"), simulated=False)


def judged(what: CardsSeen, *, held: bool | None = False) -> list[str]:
    return [found.code for found in cards.judge(what, simulated=False, held=held)]


def of_card(what: CardsSeen, **other: object) -> CardsSeen:
    return replace(what, cards=(replace(what.cards[0], **other),))  # type: ignore[arg-type]


def test_a_healthy_card() -> None:
    assert judged(seen()) == ["cards.healthy", "cards.dma"]


def test_no_card() -> None:
    assert judged(cards.CardsSeen()) == ["cards.none"]


def test_a_heart_is_looked_at_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.host.cards._BEAT_S", 0)
    places = put(tmp_path, "one-p150a")
    stopped = cards.look(places)
    assert judged(stopped)[0] == "cards.heartbeat-stopped"
    monkeypatch.setattr("ttstack.host.cards._number", lambda *_: 4711)  # the second look tells another number
    beating = cards.beating(stopped.cards, places.roots)
    assert judged(replace(stopped, alive=beating))[0] == "cards.healthy"


@pytest.mark.parametrize(
    ("firmware", "codes"),
    [
        *(("18.4.9.0", ["cards.firmware-unsupported"]), ("18.5.0.0", ["cards.firmware-old"])),
        *(("19.1.9.0", ["cards.firmware-old"]), ("19.2.0.0", ["cards.healthy"]), ("20.0.0.0", ["cards.healthy"])),
        *(("80.18.0.0", ["cards.firmware-unsupported"]), ("", ["cards.firmware-untold"])),
        ("unknown", ["cards.firmware-untold"]),
    ],
)
def test_firmware(firmware: str, codes: list[str]) -> None:
    assert judged(of_card(seen(), firmware=firmware))[:-1] == codes


def test_another_chip_has_another_minimum() -> None:
    assert judged(of_card(seen(), firmware="18.3.0.0", board="n150"))[0] == "cards.healthy"
    assert judged(of_card(seen(), firmware="18.2.0.0", board="n150"))[0] == "cards.firmware-unsupported"
    assert versions.chip("galaxy-blackhole") == versions.chip("p100a") == "blackhole"
    assert judged(of_card(seen(), firmware="1.0.0.0", board="unknown"))[0] == "cards.healthy"


@pytest.mark.parametrize(
    ("driver", "codes"),
    [
        *(("1.34.0", ["cards.driver-unsupported"]), ("2.0.0", ["cards.driver-old"]), ("2.4.9", ["cards.driver-old"])),
        *(("2.5.0", ["cards.driver-leaks"]), ("2.7.9", ["cards.driver-leaks"]), ("2.8.0", []), ("2.10.1-pre", [])),
        *(("", ["cards.driver-untold"]), ("3.0", [])),
    ],
)
def test_the_driver(driver: str, codes: list[str]) -> None:
    assert judged(of_card(seen(), driver=driver))[1:-1] == codes


def test_a_heartbeat_that_is_not_told_and_cards_that_differ() -> None:
    two = replace(
        seen(), cards=(CARD, replace(CARD, serial="2", firmware="19.2.0.0")), alive={CARD.id: None, "2": True}
    )
    found = judged(two)
    assert found[:2] == ["cards.heartbeat-untold", "cards.healthy"]
    assert "cards.firmware-mixed" in found


@pytest.mark.parametrize(
    ("pages", "held", "code"),
    [
        ({"hugepages": 0, "hugepages_missing": 1}, False, "cards.hugepages-missing"),
        ({"hugepages": 1, "mounted": False}, False, "cards.hugepages-unmounted"),
        ({"hugepages": 1, "mounted": True, "hugepages_free": 0}, False, "cards.hugepages-stale"),
        ({"hugepages": 1, "mounted": True, "hugepages_free": 0}, True, "cards.dma"),
        ({"hugepages": 1, "mounted": True, "hugepages_free": 0}, None, "cards.dma"),
        ({"hugepages": 1, "mounted": None, "hugepages_free": 1}, False, "cards.dma"),
    ],
)
def test_hugepages(pages: dict[str, object], held: bool | None, code: str) -> None:  # noqa: FBT001 - a table
    needing = of_card(seen(**pages), iommu="identity", hugepages_needed=True)
    assert judged(needing, held=held)[-1] == code


def test_hugepages_are_read_from_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.host.cards._BEAT_S", 0)
    places = put(tmp_path, "two-p150a-swapped")
    found = [each for each in cards.judge(cards.look(places), simulated=False, held=False) if "hugepages" in each.code]
    assert [(each.code, each.text) for each in found] == [
        ("cards.hugepages-missing", "the cards need 2 hugepage(s) of 1 GiB (identity), and 1 are reserved")
    ]
    assert "hugepagesz=1G hugepages=2" in found[0].hint
    folder = places.roots.sys / "kernel/mm/hugepages/hugepages-1048576kB"
    (folder / "nr_hugepages").write_text("2\n")
    (folder / "free_hugepages").write_text("1\n")
    mounts = places.roots.proc / "self/mounts"
    mounts.parent.mkdir()
    mounts.write_text("none /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n")
    assert cards.look(places).mounted is False
    mounts.write_text("none /dev/hugepages-1G hugetlbfs rw,relatime,mode=0777,pagesize=1024M 0 0\n")
    read = cards.look(places)
    assert (read.mounted, read.hugepages, read.hugepages_free, read.hugepages_missing) == (True, 2, 1, 0)


def test_devices_without_driver_or_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.host.cards._BEAT_S", 0)
    places = put(tmp_path, "one-p150a")
    bus = places.roots.sys / "bus/pci/devices"
    for name, vendor in (("0000:01:00.0", "0x1e52"), ("0000:05:00.0", "0x1e52"), ("0000:06:00.0", "0x10de")):
        (bus / name).mkdir(parents=True)
        (bus / name / "vendor").write_text(f"{vendor}\n")
    read = cards.look(places)
    assert (read.unbound, read.nodeless) == (("0000:05:00.0",), ())
    assert judged(read)[0] == "cards.unbound"
    (bus / "0000:05:00.0/tenstorrent").mkdir()
    read = cards.look(places)
    assert (read.unbound, read.nodeless) == ((), ("0000:05:00.0",))
    assert judged(read)[0] == "cards.no-node"
    lost = cards.CardsSeen(nodeless=("0000:05:00.0",))
    assert judged(lost) == ["cards.no-node"]
