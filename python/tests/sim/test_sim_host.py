from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from ttstack.sim.errors import SimError
from ttstack.sim.host import make_host


def _tree(folder: Path) -> dict[str, str]:
    found = {}
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(where, name)
            kind = str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else "/"
            found[str(path.relative_to(folder))] = kind
    return found


def test_reads_as_the_kernel_s_trees(tmp_path: Path) -> None:
    roots = make_host(tmp_path / "host", 2)
    for number, bdf in enumerate(("0000:01:00.0", "0000:02:00.0")):
        entry = roots.sys / "class" / "tenstorrent" / f"tenstorrent!{number}"
        device = (entry / "device").resolve()
        assert device.name == bdf
        assert device == (roots.sys / "bus" / "pci" / "devices" / bdf).resolve()
        about = {name: (device / name).read_text() for name in ("vendor", "device", "subsystem_device")}
        assert about == {"vendor": "0x1e52\n", "device": "0xb140\n", "subsystem_device": "0x0040\n"}
        assert (device / "iommu_group" / "type").read_text().startswith("DMA")
        assert (entry / "tt_card_type").read_text() == "p150a\n"
        serial = (entry / "tt_serial").read_text().strip()
        assert len(serial) == 16
        assert (int(serial, 16) >> 36) & 0xFFFFF == 0x40
        asic = (entry / "tt_asic_id").read_text().strip()
        named = roots.dev / "tenstorrent" / "by-id" / f"blackhole-{asic}"
        assert named.resolve() == (roots.dev / "tenstorrent" / str(number)).resolve()
        assert (roots.proc / "driver" / "tenstorrent" / str(number) / "pids").read_text() == ""
    assert (roots.sys / "module" / "tenstorrent" / "version").read_text() == "2.10.1\n"


def test_may_be_moved(tmp_path: Path) -> None:
    make_host(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    assert (tmp_path / "b/sys/class/tenstorrent/tenstorrent!1/device/vendor").read_text() == "0x1e52\n"


def test_again_changes_nothing(tmp_path: Path) -> None:
    first = make_host(tmp_path, 3)
    node = first.dev / "tenstorrent" / "0"
    before = _tree(tmp_path), node.stat().st_ino
    assert make_host(tmp_path, 3) == first
    assert (_tree(tmp_path), node.stat().st_ino) == before
    assert not [path for path in tmp_path.iterdir() if path.name not in {"sys", "proc", "dev"}]


def test_a_half_made_host_is_completed(tmp_path: Path) -> None:
    whole = _tree_of(tmp_path / "whole")
    make_host(tmp_path / "half")
    (tmp_path / "half" / "dev").rename(tmp_path / "lost")
    make_host(tmp_path / "half")
    assert _tree(tmp_path / "half") == whole


def _tree_of(folder: Path) -> dict[str, str]:
    make_host(folder)
    return _tree(folder)


def test_eight_at_once_make_one(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(8) as pool:
        pool.map(make_host, [tmp_path / "host"] * 16, chunksize=1)
    assert _tree(tmp_path / "host") == _tree_of(tmp_path / "alone")


def test_another_count_is_refused(tmp_path: Path) -> None:
    make_host(tmp_path, 2)
    with pytest.raises(SimError, match="has 2 cards, not 4"):
        make_host(tmp_path, 4)


@pytest.mark.parametrize("cards", [-1, 33])
def test_counts_that_no_driver_has(tmp_path: Path, cards: int) -> None:
    with pytest.raises(SimError, match="0 to 32 cards"):
        make_host(tmp_path, cards)


def test_no_card_is_a_host_too(tmp_path: Path) -> None:
    assert [path.name for path in (make_host(tmp_path, 0).dev / "tenstorrent").iterdir()] == ["by-id"]


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("")
    with pytest.raises(SimError, match="cannot make a simulated host"):
        make_host(tmp_path / "host")
