from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ttstack.host.errors import HostError
from ttstack.host.holders import holders
from ttstack.host.types import Card, Roots


def card(node: Path) -> Card:
    return Card(str(node), 0, "0000:01:00.0", "", "", "p150a")


def roots(tree: Path) -> Roots:
    return Roots(tree / "sys", tree / "proc", tree / "dev")


def test_the_drivers_list_is_believed_and_repeats_are_one_holder(tmp_path: Path) -> None:
    pids = tmp_path / "proc/driver/tenstorrent/0/pids"
    pids.parent.mkdir(parents=True)
    pids.write_text("")
    assert holders(card(tmp_path / "node"), roots(tmp_path), simulated=False).free
    pids.write_text(f"{os.getpid()}\n{os.getpid()}\n0\n")
    found = holders(card(tmp_path / "node"), roots(tmp_path), simulated=False)
    assert [holder.pid for holder in found.found] == [0, os.getpid()]
    assert "outside this pid namespace" in str(found)


def test_a_list_that_cannot_be_read_is_an_error_and_not_nobody(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/tenstorrent/0/pids").mkdir(parents=True)
    with pytest.raises(HostError):
        holders(card(tmp_path / "node"), roots(tmp_path), simulated=False)


def test_an_open_simulated_node_has_a_holder(tmp_path: Path) -> None:
    node = tmp_path / "0"
    node.write_text("")
    assert holders(card(node), roots(tmp_path), simulated=True).free
    with node.open():
        found = holders(card(node), roots(tmp_path), simulated=True)
        assert [holder.pid for holder in found.found] == [os.getpid()]
        assert not found.free
    with (tmp_path / "link").open("w"):  # another file
        assert holders(card(node), roots(tmp_path), simulated=True).free


def test_another_inode_of_the_same_device_counts(tmp_path: Path) -> None:
    null = Path("/dev/null")
    assert stat.S_ISCHR(null.stat().st_mode)
    folder = tmp_path / "proc" / "77" / "fd"
    folder.mkdir(parents=True)
    (folder / "3").symlink_to("/dev/zero")
    assert holders(card(null), roots(tmp_path), simulated=False).free
    (folder / "4").symlink_to("/dev/null")
    found = holders(card(null), roots(tmp_path), simulated=False)
    assert [holder.pid for holder in found.found] == [77]


def test_a_process_that_cannot_be_looked_into_is_not_nobody(tmp_path: Path) -> None:
    (tmp_path / "proc" / "78").mkdir(parents=True)
    (tmp_path / "proc" / "78" / "fd").write_text("")  # listing it fails, for root too
    found = holders(card(Path("/dev/null")), roots(tmp_path), simulated=False)
    assert (found.found, found.unseen, found.free) == ((), 1, False)
