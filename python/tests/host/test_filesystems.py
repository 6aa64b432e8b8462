"""Which folders share their room, over lists of mounts made here. tests/cache/test_real_filesystems.py mounts some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ttstack.host.errors import HostError
from ttstack.host.filesystems import Filesystem, filesystem_of, first_there, written_below

if TYPE_CHECKING:
    from pathlib import Path


def _proc(folder: Path, *lines: str, mount: int = 7) -> Path:
    """Make a /proc in which every open folder is on one mount."""
    proc = folder / "proc"
    descriptors = proc / "self/fdinfo"
    descriptors.mkdir(parents=True)
    for number in range(3, 64):
        (descriptors / str(number)).write_text(f"pos:\t0\nflags:\t010000000\nmnt_id:\t{mount}\n")
    (proc / "self/mountinfo").write_text("".join(f"{line}\n" for line in lines))
    return proc


def _seen(folder: Path, line: str) -> Filesystem:
    return filesystem_of(folder, _proc(folder, "5 1 0:2 / / rw - tmpfs none rw", line))


def test_an_ordinary_one_goes_by_its_device(tmp_path: Path) -> None:
    seen = _seen(tmp_path, "7 5 8:1 / /disk rw,relatime shared:3 master:1 - ext4 /dev/sda1 rw")
    device = tmp_path.stat().st_dev
    assert (seen.id, seen.kind, seen.mount) == (f"{os.major(device)}:{os.minor(device)}", "ext4", "/disk")


@pytest.mark.parametrize(
    ("kind", "one", "other", "name"),
    [
        ("btrfs", "/dev/sda1 rw,subvol=/a", "/dev/sda1 rw,subvol=/b", "btrfs /dev/sda1"),
        ("bcachefs", "/dev/a:/dev/b rw", "/dev/a:/dev/b rw", "bcachefs /dev/a:/dev/b"),
        ("zfs", "tank/a rw", "tank/b/c rw", "zfs tank"),
    ],
)
def test_subvolumes_and_datasets_share_their_pool(tmp_path: Path, kind: str, one: str, other: str, name: str) -> None:
    for at, source in enumerate((one, other)):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert _seen(folder, f"7 5 0:{at} / /p{at} rw - {kind} {source}").id == name


def test_an_overlay_is_where_its_upper_folder_is(tmp_path: Path) -> None:
    upper = tmp_path / "a b,c"
    upper.mkdir()
    text = str(upper).replace(" ", "\\040").replace(",", "\\\\,")
    line = f"7 5 0:43 / {tmp_path} rw - overlay overlay rw,lowerdir=/l,upperdir={text},workdir=/w"
    device = tmp_path.stat().st_dev
    assert _seen(tmp_path, line).id == f"{os.major(device)}:{os.minor(device)}"


@pytest.mark.parametrize("upper", ["relative/up", "/nowhere/at/all", "/proc"])
def test_an_overlay_whose_upper_folder_is_not_seen_stands_alone(tmp_path: Path, upper: str) -> None:
    line = f"7 5 0:43 / {tmp_path} rw - overlay overlay rw,upperdir={upper}"
    device = tmp_path.stat().st_dev
    assert _seen(tmp_path, line).id == f"{os.major(device)}:{os.minor(device)}"


def test_a_mount_that_is_not_listed_leaves_the_device(tmp_path: Path) -> None:
    seen = filesystem_of(tmp_path, _proc(tmp_path, "5 1 0:2 / / rw - tmpfs none rw", "nonsense", "7 5 x"))
    assert (seen.kind, seen.mount) == ("", str(tmp_path))


def test_what_the_kernel_does_not_tell_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="which file system"):
        filesystem_of(tmp_path, tmp_path / "no proc")


def test_a_folder_that_is_not_there_yet_is_where_its_parent_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    assert first_there(tmp_path / "a/b/c") == tmp_path.resolve()
    (tmp_path / "target/inner").mkdir(parents=True)
    assert first_there(tmp_path / "link/inner/x") == (tmp_path / "target/inner").resolve()
    (tmp_path / "file").write_text("")
    assert first_there(tmp_path / "file/x") == tmp_path.resolve()


def test_what_is_written_counts_with_folders_and_without_holes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/data").write_bytes(b"x" * 100_000)
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "link").symlink_to("/usr")
    seen = written_below(tmp_path)
    assert (seen.bytes, seen.files) == (100_000, 4)
    assert written_below(tmp_path, lambda name: name in {"hole", "data"}).files == 3
    assert written_below(tmp_path / "none").bytes == 0
