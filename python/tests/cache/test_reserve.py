"""Whether a build fits beside all else that is being built, over disks made here."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from reserve_kit import BESIDE, GB, NOTHING, Disks, disks, want_of
from seed_kit import INPUTS, begin, builder, complete, with_env, write_files

from ttstack.cache.errors import CacheRefusedError
from ttstack.cache.lock import KeyLock
from ttstack.cache.reserve import Reservation, check, reserve
from ttstack.host.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["disks"]


def _refusal(reservation: Reservation) -> CacheRefusedError:
    assert not reservation.fits
    with pytest.raises(CacheRefusedError) as caught:
        check(reservation)
    assert caught.value.exit_code == 3
    return caught.value


def _fits(reservation: Reservation) -> bool:
    if reservation.fits:
        check(reservation)
    else:
        _refusal(reservation)
    return reservation.fits


def test_a_tenth_more_than_expected_must_be_free(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 11)
    assert _fits(reserve(tmp_path, want_of(tmp_path, 10)))
    assert not _fits(reserve(tmp_path, want_of(tmp_path, 10.01)))


def test_the_refusal_says_what_is_lacking_and_the_way_out(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 10.5)
    error = _refusal(reserve(tmp_path, want_of(tmp_path, 10)))
    assert error.reason == "no_space"
    assert "/mnt/a has 10.5 GB free, and 11.0 GB are needed (10.0 GB for this build, 1.0 GB as a margin)" in str(error)
    assert "ttx reserve mine" in error.hint


def test_nothing_is_written(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 100)
    reserve(tmp_path / "root", want_of(tmp_path / "root", 1, BESIDE))
    assert not list(tmp_path.iterdir())


def test_what_is_there_already_is_not_needed(tmp_path: Path, disks: Disks) -> None:
    want = replace(want_of(tmp_path, 0), expected=10_000_000)
    disks.put(tmp_path, "a", 0.0101)
    assert not reserve(tmp_path, want).fits
    write_files(begin(tmp_path, INPUTS), bytes(1_000_000))
    seen = reserve(tmp_path, want)
    assert 2_000_000 < seen.present < 2_010_000
    assert (seen.shares[0].needed, seen.siblings) == (10_000_000 - seen.present, ())
    assert seen.fits


def test_two_builds_see_each_other(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 20)
    other = begin(tmp_path, with_env(A="1"), expected=10 * GB, builder=builder("run-9", arm="theirs"))
    seen = reserve(tmp_path, want_of(tmp_path, 10))
    (sibling,) = seen.siblings
    assert (sibling.path, sibling.run, sibling.arm, sibling.left) == (other, "run-9", "theirs", 10 * GB)
    assert "10.0 GB for other builds" in str(_refusal(seen))
    disks.put(tmp_path, "a", 22)
    assert _fits(reserve(tmp_path, want_of(tmp_path, 10)))


def test_what_a_sibling_has_written_is_not_counted_twice(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 1)
    other = begin(tmp_path, with_env(A="1"), expected=10_000_000)
    before = reserve(tmp_path, want_of(tmp_path, 0)).shares[0].others
    write_files(other, bytes(3_000_000))
    written = reserve(tmp_path, want_of(tmp_path, 0)).shares[0].others
    assert before == 10_000_000
    assert 3_990_000 < written < 4_000_000
    write_files(other, bytes(9_000_000))
    assert reserve(tmp_path, want_of(tmp_path, 0)).shares[0].others == 0  # more than expected is no credit


def test_free_room_is_asked_for_after_what_siblings_have_written(
    tmp_path: Path, disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what one writes between the two looks would count as free and as written."""
    disks.put(tmp_path, "a", 1)
    other = begin(tmp_path, with_env(A="1"), expected=1)
    module = sys.modules[reserve.__module__]
    written = module.written_below

    def look(folder: Path, *leave_out: object) -> object:
        disks.asked.append(f"written {folder.name}")
        return written(folder, *leave_out)

    monkeypatch.setattr(module, "written_below", look)
    reserve(tmp_path, want_of(tmp_path, 1))
    first = disks.asked.index(other.name)
    assert all(not entry.startswith("written") for entry in disks.asked[first:])


@pytest.mark.parametrize("end", ["dead", "complete", "own"])
def test_builds_that_take_nothing_more(tmp_path: Path, disks: Disks, end: str) -> None:
    disks.put(tmp_path, "a", 11)
    if end == "dead":
        begin(tmp_path, with_env(A="1"), expected=90 * GB, builder=builder(alive=False))
    elif end == "complete":
        complete(tmp_path, with_env(A="1"), expected=90 * GB)
    else:
        begin(tmp_path, INPUTS, expected=90 * GB)
    seen = reserve(tmp_path, want_of(tmp_path, 10))
    assert (seen.siblings, _fits(seen)) == ((), True)


def test_a_build_whose_lock_is_held_lives_whatever_its_builder_is(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 11)
    other = begin(tmp_path, with_env(A="1"), expected=90 * GB, builder=builder(alive=False))
    handle = KeyLock(tmp_path, other.name).exclusive()
    assert handle is not None
    assert not _fits(reserve(tmp_path, want_of(tmp_path, 10)))
    os.close(handle)
    assert _fits(reserve(tmp_path, want_of(tmp_path, 10)))


def test_an_unreadable_directory_that_somebody_uses_refuses(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 11)
    other = begin(tmp_path, with_env(A="1"))
    (other / ".ttx-cache.json").write_text("{")
    assert _fits(reserve(tmp_path, want_of(tmp_path, 10)))
    handle = KeyLock(tmp_path, other.name).exclusive()
    assert handle is not None
    error = _refusal(reserve(tmp_path, want_of(tmp_path, 10)))
    assert "cannot be told" in error.message
    os.close(handle)


def test_another_disk_has_other_room(tmp_path: Path, disks: Disks) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    disks.put(root, "a", 11)
    disks.put(other, "b", 100)
    begin(other, with_env(A="1"), expected=50 * GB)
    seen = reserve(root, want_of(root, 10), roots=(other,))
    assert _fits(seen)
    assert {share.id: share.others for share in seen.shares} == {"a": 0, "b": 50 * GB}


def test_two_roots_of_one_disk_share_its_room(tmp_path: Path, disks: Disks) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    disks.put(tmp_path, "a", 11)
    begin(other, with_env(A="1"), expected=5 * GB)
    assert _fits(reserve(root, want_of(root, 10)))
    assert not _fits(reserve(root, want_of(root, 10), roots=(other,)))
    assert len(reserve(root, want_of(root, 10), roots=(root, other, other)).siblings) == 1


def test_a_root_that_is_a_link_is_looked_at_once(tmp_path: Path, disks: Disks) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    disks.put(tmp_path, "a", 11)
    begin(root, with_env(A="1"), expected=GB)
    link.symlink_to(root)
    assert len(reserve(link, want_of(link, 1), roots=(root,)).siblings) == 1


def test_one_folder_with_a_smaller_quota_decides(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 100)
    disks.put(tmp_path / "jit", "a", 2)
    assert not _fits(reserve(tmp_path, want_of(tmp_path, 10)))


def test_the_kernel_cache_counts_where_it_lies(tmp_path: Path, disks: Disks) -> None:
    want = want_of(tmp_path, 10, BESIDE)
    disks.put(tmp_path, "a", 13.9)
    assert not _fits(reserve(tmp_path, want))
    disks.put(tmp_path / "jit", "b", 3)
    assert _fits(reserve(tmp_path, want))
    disks.put(tmp_path / "jit", "b", 2.9)
    assert not _fits(reserve(tmp_path, want))


def test_a_kernel_cache_that_is_full_already_takes_nothing(tmp_path: Path, disks: Disks) -> None:
    want = replace(want_of(tmp_path, 10), allowance=replace(NOTHING, jit_bytes=1_000_000))
    disks.put(tmp_path, "a", 11)
    assert not _fits(reserve(tmp_path, want))
    want.jit.mkdir(parents=True)
    (want.jit / "kernel").write_bytes(bytes(1_000_000))
    assert _fits(reserve(tmp_path, want))


def test_kernels_of_a_sibling_count_too(tmp_path: Path, disks: Disks) -> None:
    begin(tmp_path, with_env(A="1"), builder=builder(arm="theirs"))
    disks.put(tmp_path, "a", 100)
    seen = reserve(tmp_path, want_of(tmp_path, 10, BESIDE))
    assert seen.shares[0].margin == 6 * GB + GB
    assert tmp_path / "jit/theirs-ttnn-0.81.1" in seen.shares[0].paths


def test_the_containers_folder_counts_where_it_lies(tmp_path: Path, disks: Disks) -> None:
    root, docker = tmp_path / "root", tmp_path / "docker"
    want = replace(want_of(root, 10, replace(BESIDE, jit_bytes=0)), container_root=docker)
    disks.put(tmp_path, "a", 11.9)
    assert not _fits(reserve(root, want))
    disks.put(docker, "b", 1)
    assert _fits(reserve(root, want))
    disks.put(docker, "b", 0.9)
    assert not _fits(reserve(root, want))


def test_inodes_count(tmp_path: Path, disks: Disks) -> None:
    want = replace(want_of(tmp_path, 1, replace(BESIDE, jit_bytes=0)), container_root=tmp_path)
    disks.put(tmp_path, "a", 100, files=341)
    assert _fits(reserve(tmp_path, want))  # 100 + 200 + 10, and a tenth
    disks.put(tmp_path, "a", 100, files=340)
    error = _refusal(reserve(tmp_path, want))
    assert "340 inodes free, and 341 are needed" in error.message
    disks.put(tmp_path, "a", 100, files=None)
    assert _fits(reserve(tmp_path, want))


def test_inodes_of_siblings_count_less_what_they_have_made(tmp_path: Path, disks: Disks) -> None:
    want = want_of(tmp_path, 1, replace(BESIDE, jit_bytes=0, jit_files=0))
    other = begin(tmp_path, with_env(A="1"))
    disks.put(tmp_path, "a", 100, files=220)  # 100 of each, and a tenth
    assert _fits(reserve(tmp_path, want))
    disks.put(tmp_path, "a", 100, files=219)
    assert not _fits(reserve(tmp_path, want))
    write_files(other)
    assert _fits(reserve(tmp_path, want))


def test_a_read_only_disk_is_refused_as_such(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 100, read_only=True)
    error = _refusal(reserve(tmp_path, want_of(tmp_path, 1)))
    assert (error.reason, "read-only" in error.message) == ("cache_unwritable", True)


def test_a_disk_that_cannot_be_found_out_is_an_error(tmp_path: Path, disks: Disks) -> None:
    assert not disks.of
    with pytest.raises(HostError):
        reserve(tmp_path, want_of(tmp_path, 1))
