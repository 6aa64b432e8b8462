from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ttstack.host.errors import HostError
from ttstack.host.mountinfo import MountPoint, elsewhere, is_within, mount_points, place_of

if TYPE_CHECKING:
    from pathlib import Path

MOUNTS = (
    MountPoint("8:1", "/", "/"),
    MountPoint("8:2", "/", "/data"),
    MountPoint("8:2", "/caches", "/var/cache/tt"),
    MountPoint("8:3", "/@home", "/home"),
    MountPoint("0:9", "/", "/data/over"),
)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/", ("8:1", "/")),
        ("/etc/x", ("8:1", "/etc/x")),
        ("/database", ("8:1", "/database")),
        ("/data", ("8:2", "/")),
        ("/data/caches/k", ("8:2", "/caches/k")),
        ("/var/cache/tt", ("8:2", "/caches")),
        ("/var/cache/tt/k", ("8:2", "/caches/k")),
        ("/home/a", ("8:3", "/@home/a")),
        ("/data/over/k", ("0:9", "/k")),
    ],
)
def test_a_place_is_where_the_file_system_has_it(path: str, place: tuple[str, str]) -> None:
    assert place_of(path, MOUNTS) == place


def test_of_two_mounts_at_one_point_the_later_is_seen() -> None:
    assert place_of("/data/x", (*MOUNTS, MountPoint("8:7", "/", "/data"))) == ("8:7", "/x")
    assert place_of("/x", ()) is None


def test_within() -> None:
    assert is_within("/a/b", "/a")
    assert is_within("/a", "/a")
    assert is_within("/a", "/")
    assert not is_within("/ab", "/a")


def make(proc: Path, pid: int | str, namespace: str, *lines: str) -> None:
    (proc / str(pid) / "ns").mkdir(parents=True)
    (proc / namespace).touch()
    os.link(proc / namespace, proc / str(pid) / "ns" / "mnt")
    (proc / str(pid) / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    (proc / str(pid) / "cmdline").write_bytes(b"engine\0--x")


def test_lines_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    make(tmp_path, "self", "one", r"36 35 98:0 /a\040b /c\134d rw,noatime master:1 - ext3 /dev/root rw", "cut off")
    assert mount_points(tmp_path) == (MountPoint("98:0", "/a b", "/c\\d"),)
    with pytest.raises(HostError, match="cannot read"):
        mount_points(tmp_path / "no")


def test_each_other_namespace_is_looked_at_once(tmp_path: Path) -> None:
    line = "36 35 8:1 /{0} /{0} rw - ext4 /dev/x rw"
    make(tmp_path, "self", "ours", line.format("ours"))
    make(tmp_path, 1, "theirs", line.format("theirs"))
    make(tmp_path, 2, "theirs", line.format("theirs"))
    os.link(tmp_path / "ours", tmp_path / "again")
    make(tmp_path, 3, "again", line.format("ours"))
    make(tmp_path, 4, "closed")
    (tmp_path / "4" / "mountinfo").unlink()
    assert [(each.mount.root, each.pid, each.command) for each in elsewhere(tmp_path)] == [("/theirs", 1, "engine --x")]


def test_this_process_sees_its_own() -> None:
    assert any(mount.point == "/" for mount in mount_points())
