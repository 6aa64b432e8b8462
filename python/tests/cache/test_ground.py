"""The names of folders: by links, by mounts, and as they lie in their file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ttstack.cache.ground import Ground
from ttstack.host.mountinfo import MountPoint, mount_points, place_of

if TYPE_CHECKING:
    from pathlib import Path


def places(names: frozenset[tuple[object, ...]]) -> set[tuple[object, ...]]:
    return {name[1:] for name in names if len(name) == 3}


MOUNTS = (
    MountPoint("8:1", "/", "/"),
    MountPoint("8:2", "/data/deep", "/mnt/a"),
    MountPoint("0:4", "net:[4026531840]", "/run/netns"),
    MountPoint("8:3", "/", "/mnt/a/b"),
    MountPoint("8:4", "/over/", "/mnt/a/b"),  # on top of the one before
)


@pytest.mark.parametrize(
    "path",
    ["/", "/x", "/mnt", "/mnt/a", "/mnt/ab", "/mnt/a/c/d", "/mnt/a/b", "/mnt/a/b/c", "/run/netns", "/run/netns/x"],
)
def test_a_place_is_that_of_the_mount_that_holds_it(path: str) -> None:
    assert places(Ground(MOUNTS).own(path)) == {place_of(path, MOUNTS)}


def test_what_is_around_a_part_of_a_file_system_that_is_mounted_somewhere_is_in_its_chain() -> None:
    found = places(Ground(MOUNTS).chain("/mnt/a/c"))
    assert found == {
        ("8:1", "/"),
        ("8:1", "/mnt"),
        *(("8:2", f"/{at}") for at in ("data/deep/c", "data/deep", "data", "")),
    }
    assert Ground((*MOUNTS, MountPoint("8:2", "/data", "/other"))).within("/mnt/a/c", "/other")


def test_without_any_mount_paths_and_inodes_are_enough(tmp_path: Path) -> None:
    assert places(Ground(()).chain(tmp_path)) == set()
    assert Ground(()).within(tmp_path, tmp_path.parent)


def test_links_anywhere_in_a_path_are_followed(tmp_path: Path) -> None:
    real = tmp_path / "real" / "inner"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("..")
    ground = Ground(mount_points())
    for path in (
        "link/inner",
        "link/inner/",
        "real/./inner",
        "real/up/link/inner",
        "link/../real/inner",
        "link//inner",
    ):
        assert ground.own(f"{tmp_path}/{path}") == ground.own(real), path
    assert ground.own(tmp_path / "link") == ground.own(tmp_path / "real")
    assert not ground.within(tmp_path / "link", real)
    assert ground.within(tmp_path / "real/up/link/inner/x/y", tmp_path / "link")


def test_what_is_not_there_has_the_names_that_it_would_have(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to("absent/deep")
    (tmp_path / "file").touch()
    ground = Ground(mount_points())
    assert ground.own(tmp_path / "nowhere") == ground.own(tmp_path / "absent/deep")
    assert ground.within(tmp_path / "nowhere/x", tmp_path / "absent")
    assert ground.within(tmp_path / "file/x", tmp_path / "file")
    assert ground.within(f"{tmp_path}/{'a/' * 900}b", tmp_path)  # deeper than any call may nest


def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        Ground(()).own(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        Ground(()).own(tmp_path / "a" / "x")


def test_a_deep_folder_that_is_there_is_named(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 150)
    deep.mkdir(parents=True)
    ground = Ground(mount_points())
    assert ground.own(deep) == ground.own(f"{deep}/.")
    assert ground.within(deep, tmp_path)


def test_two_names_of_one_inode_are_one_folder(tmp_path: Path) -> None:
    """As a bind mount, which only root makes; a file with two links stands for it."""
    (tmp_path / "one").touch()
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    ground = Ground(mount_points())
    assert ground.within(tmp_path / "two", tmp_path / "one")
    assert not ground.within(tmp_path / "two", tmp_path / "three")
