"""Caches on real file systems: full, without inodes, read-only, mounted twice.

Nothing complete is ever lost, and nothing broken is ever used.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from real_disks import MIB, disks, fill, free_bytes, sound, until_refused
from seed_kit import INPUTS, INSIDE, NAMES, begin, builder, complete, files_of, finish, with_env, write_files

from ttstack.cache import build, settle
from ttstack.cache.build import Start
from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.manifest import scan
from ttstack.cache.marker import key_of
from ttstack.cache.reserve import SIMULATED, Wanted, check, reserve
from ttstack.cache.roots import known_roots
from ttstack.cache.seed import choose, seed
from ttstack.cache.seed_check import check_seeds
from ttstack.cache.survey import standing_of, survey
from ttstack.host.filesystems import filesystem_of
from ttstack.sim import cache_files
from ttstack.sim.errors import BootError

if TYPE_CHECKING:
    from pathlib import Path

    from real_disks import Disks

    from ttstack.cache.build import Held
    from ttstack.cache.registry import Registry

__all__ = ["disks"]
pytestmark = pytest.mark.host

FIRST = f"{INSIDE}/{NAMES[0]}"
BF4 = with_env(HEAD_BF4="1")


def _want(root: Path, expected: int, inputs: dict[str, object] = BF4) -> Wanted:
    key = key_of(inputs)
    return Wanted("arm", key, root / key, root / "jit/arm-x", None, expected, SIMULATED.files, "catalogue", SIMULATED)


def _begin(root: Path, locks: Path, expected: int, inputs: dict[str, object] = BF4) -> Held:
    """Begin a build as a start does: with its reservation, and the lock."""

    def room(_registry: Registry) -> int:
        check(reserve(root, _want(root, expected, inputs), roots=known_roots(locks)))
        return expected

    start = Start(root=root, locks=locks, key=key_of(inputs), inputs=inputs, builder=builder("run-b"))
    return build.begin(start, room)


def _write_engine_files(folder: Path, size: int, count: int) -> None:
    for at in range(count):
        cache_files.store(folder / INSIDE / cache_files.file_name(f"layers.{at}.w1", "BFLOAT8_B"), os.urandom(size))


# --- a disk that fills up ------


@pytest.mark.parametrize("left", [0, 4096, 40_000])
def test_a_disk_that_fills_up_while_a_cache_is_built(disks: Disks, tmp_path: Path, left: int) -> None:
    place = disks.make("ext4", 48 * MIB)
    root, locks = place / "caches", tmp_path / "locks"
    whole = complete(root, INPUTS)
    content = files_of(whole)
    held = _begin(root, locks, 8 * MIB)
    fill(place, leave=2 * MIB)  # somebody else
    with pytest.raises(BootError, match="Failed to write"):
        _write_engine_files(held.folder, 300_000, 40)
    fill(place, leave=left)  # and the last block, or some
    assert settle.fail(root, key_of(BF4), "run-b", "the disk is full")
    os.close(held.lock)

    broken = standing_of(held.folder)
    assert (broken.standing, broken.text) == ("broken", "the disk is full")
    sound(whole, content)
    assert choose(root, with_env(HEAD_BF4="2"), in_name=("HEAD_BF4",), checkpoint="").key == whole.name
    with pytest.raises(CacheRefusedError) as refused:
        _begin(root, locks, 8 * MIB, with_env(OTHER="1"))
    assert refused.value.reason == "no_space"
    (place / "filler").unlink()
    again = _begin(root, locks, 8 * MIB)
    assert again.marker.state == "building"
    assert "full" in again.replaced
    assert scan(again.folder) == ()
    os.close(again.lock)
    sound(whole, content)


@pytest.mark.parametrize("by_rename", [True, False])
@pytest.mark.parametrize("left", [0, 40_000, MIB])
def test_seeding_on_a_full_disk_is_whole_or_undone(disks: Disks, *, by_rename: bool, left: int) -> None:
    root = disks.make("ext4", 48 * MIB)
    whole = begin(root, INPUTS)
    write_files(whole, bytes(MIB))
    finish(whole)
    content = files_of(whole)
    target = begin(root, BF4)
    fill(root, leave=left)
    try:
        done = seed(whole, target, by_rename=by_rename)
    except CacheError as error:
        assert "No space left" in str(error)  # noqa: PT017 - either way is right, and each has its own consequence
        assert scan(target) == ()
        assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names
    else:
        assert (by_rename, done.method) == (True, "hardlink")
        assert files_of(target) == content
        assert not check_seeds(target).changed
    assert standing_of(target).standing == "building"
    sound(whole, content)


def test_root_may_not_count_on_what_is_kept_for_root(disks: Disks) -> None:
    root = disks.make("ext4", 48 * MIB, "-m", "50")
    seen = os.statvfs(root)
    assert seen.f_bfree - seen.f_bavail > 1000
    kept = filesystem_of(root).free
    assert kept == seen.f_bavail * seen.f_frsize
    assert not reserve(root, _want(root, kept)).fits
    assert reserve(root, _want(root, kept // 2)).fits


def test_what_a_sibling_really_wrote_is_not_counted_twice(disks: Disks) -> None:
    """Free room goes down as it writes, what it has left too, and the sum stays."""
    root = disks.make("ext4", 48 * MIB)
    other = begin(root, with_env(OTHER="1"), expected=20 * MIB)
    before = reserve(root, _want(root, MIB)).shares[0]
    (other / "half").write_bytes(os.urandom(10 * MIB))
    after = reserve(root, _want(root, MIB)).shares[0]
    assert after.others == before.others - 10 * MIB
    assert abs((after.free - after.others) - (before.free - before.others)) < MIB  # with what the file's extents take


# --- no inodes ------


def test_a_disk_without_inodes(disks: Disks, tmp_path: Path) -> None:
    root, locks = disks.make("ext4", 48 * MIB, "-N", "256"), tmp_path / "locks"
    whole = complete(root, INPUTS)
    content = files_of(whole)
    target = begin(root, BF4)
    (root / "many").mkdir()
    made = until_refused(errno.ENOSPC, lambda at: (root / "many" / str(at)).touch())
    assert free_bytes(root) > 20 * MIB
    for by_rename in (True, False):
        with pytest.raises(CacheError, match="No space left"):
            seed(whole, target, by_rename=by_rename)
        assert scan(target) == ()
    with pytest.raises(CacheRefusedError, match="0 inodes free"):
        check(reserve(root, _want(root, 1)))
    for at in range(100):
        (root / "many" / str(at)).unlink()
    with pytest.raises(CacheRefusedError, match=r"\b[0-9]{2} inodes free"):  # an engine would still run out of them
        _begin(root, locks, 1, with_env(OTHER="1"))
    for at in range(100, made):
        (root / "many" / str(at)).unlink()
    assert reserve(root, _want(root, 1)).fits
    sound(whole, content)


# --- read-only ------


def test_a_read_only_root(disks: Disks, tmp_path: Path) -> None:
    root, locks = disks.make("ext4", 48 * MIB), tmp_path / "locks"
    whole = complete(root, INPUTS)
    half = begin(root, with_env(OTHER="1"), builder=builder("gone", alive=False))
    content = files_of(whole)
    disks.again("-o", "remount,ro", str(root))
    with pytest.raises(CacheRefusedError, match="read-only") as refused:
        check(reserve(root, _want(root, 1)))
    assert refused.value.reason == "cache_unwritable"
    with pytest.raises(CacheError):
        _begin(root, locks, 1)
    with pytest.raises(CacheError):
        _begin(root, locks, 1, INPUTS)
    sound(whole, content)
    assert [entry.standing for entry in survey(root) if entry.path == half] == ["abandoned"]
    assert choose(root, BF4, in_name=("HEAD_BF4",), checkpoint="").key == whole.name
    disks.again("-o", "remount,rw", str(root))
    sound(whole, content)


# --- two mounts, and what shares its room ------


def test_two_mounts_of_one_disk(disks: Disks, tmp_path: Path) -> None:
    place = disks.make("ext4", 48 * MIB)
    here, there = tmp_path / "here", tmp_path / "there"
    for name, point in (("one", here), ("two", there)):
        (place / name).mkdir()
        point.mkdir()
        disks.mount("--bind", str(place / name), str(point))
    assert here.stat().st_dev == there.stat().st_dev
    (here / "probe").touch()
    with pytest.raises(OSError, match="cross-device"):
        os.link(here / "probe", there / "probe")
    # One disk: a build under one root takes the room of one under the other.
    assert filesystem_of(here).id == filesystem_of(there / "not/made/yet").id
    begin(there, with_env(OTHER="1"), expected=20 * MIB)
    assert reserve(here, _want(here, 20 * MIB)).fits
    seen = reserve(here, _want(here, 20 * MIB), roots=(there,))
    assert (len(seen.shares), seen.fits) == (1, False)
    # A key that is a mount of its own: a link is tried, refused, and it is copied.
    whole = complete(here, INPUTS)
    target = begin(there, BF4)
    (here / target.name).mkdir()
    disks.mount("--bind", str(target), str(here / target.name))
    done = seed(whole, here / target.name, by_rename=True)
    assert done.counts == {"copy": 2}
    assert files_of(target) == files_of(whole)
    assert scan(target) == scan(whole)


def test_an_overlay_takes_the_room_of_its_upper_folder(disks: Disks, tmp_path: Path) -> None:
    place = disks.make("ext4", 48 * MIB)
    merged = tmp_path / "merged"
    for folder in (place / "up, \\here", place / "work", tmp_path / "low", merged):
        folder.mkdir()
    upper = str(place / "up, \\here").replace("\\", "\\\\").replace(",", "\\,")
    options = f"lowerdir={tmp_path}/low,upperdir={upper},workdir={place}/work"
    disks.mount("-t", "overlay", "none", "-o", options, str(merged))
    assert merged.stat().st_dev != place.stat().st_dev
    assert filesystem_of(merged).id == filesystem_of(place).id
    assert filesystem_of(tmp_path).id != filesystem_of(place).id


def test_subvolumes_of_a_btrfs_share_its_room(disks: Disks) -> None:
    import subprocess  # noqa: PLC0415 - here alone

    place = disks.make("btrfs", 128 * MIB)
    for name in ("one", "two"):
        subprocess.run(["btrfs", "subvolume", "create", place / name], check=True, capture_output=True, timeout=30)
    one, two = place / "one", place / "two"
    assert one.stat().st_dev != two.stat().st_dev
    assert os.statvfs(one).f_fsid != os.statvfs(two).f_fsid
    assert filesystem_of(one).id == filesystem_of(two).id == filesystem_of(place).id
    assert filesystem_of(one).files_free is None
    whole, target = complete(one, INPUTS), begin(two, BF4)
    assert seed(whole, target, by_rename=True).counts == {"reflink": 2}
    assert files_of(target) == files_of(whole)
