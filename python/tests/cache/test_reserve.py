"""Whether a build fits beside all else that is being built, over disks made here."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from seed_kit import INPUTS, begin, builder, complete, with_env, write_files

from ttstack.cache import room
from ttstack.cache.errors import CacheRefusedError
from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import key_of
from ttstack.cache.reserve import Allowance, Reservation, Wanted, check, reserve
from ttstack.cache.roots import known_roots, note_of, reserving
from ttstack.host.errors import HostError
from ttstack.host.filesystems import Filesystem

if TYPE_CHECKING:
    from pathlib import Path

GB = 1_000_000_000
NOTHING = Allowance(files=0, jit_bytes=0, jit_files=0, container_bytes=0, container_files=0)
BESIDE = Allowance(files=100, jit_bytes=3 * GB, jit_files=200, container_bytes=GB, container_files=10)


@dataclass
class Disks:
    """The disks of a host, by the folders that are on them: the longest that fits."""

    of: dict[Path, Filesystem]
    asked: list[str]

    def put(self, folder: Path, name: str, free: float, files: int | None = None, *, read_only: bool = False) -> None:
        self.of[folder] = Filesystem(name, "ext4", f"/mnt/{name}", int(free * GB), files, read_only)

    def find(self, path: Path, _proc: Path) -> Filesystem:
        self.asked.append(path.name)
        found = [folder for folder in self.of if path.is_relative_to(folder)]
        if not found:
            raise HostError(f"no disk for {path}")
        return self.of[max(found, key=lambda folder: len(folder.parts))]


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Disks:
    made = Disks({}, [])
    monkeypatch.setattr(room, "filesystem_of", made.find)
    return made


def _want(root: Path, expected: float, allowance: Allowance = NOTHING, inputs: dict[str, object] = INPUTS) -> Wanted:
    key = key_of(inputs)
    return Wanted(
        arm="mine",
        key=key,
        folder=root / key,
        jit=root / "jit/mine-ttnn-0.81.1",
        container_root=None,
        expected=int(expected * GB),
        files=allowance.files,
        basis="catalogue",
        allowance=allowance,
    )


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
    assert _fits(reserve(tmp_path, _want(tmp_path, 10)))
    assert not _fits(reserve(tmp_path, _want(tmp_path, 10.01)))


def test_the_refusal_says_what_is_lacking_and_the_way_out(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 10.5)
    error = _refusal(reserve(tmp_path, _want(tmp_path, 10)))
    assert error.reason == "no_space"
    assert "/mnt/a has 10.5 GB free, and 11.0 GB are needed (10.0 GB for this build, 1.0 GB as a margin)" in str(error)
    assert "ttx reserve mine" in error.hint


def test_nothing_is_written(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 100)
    reserve(tmp_path / "root", _want(tmp_path / "root", 1, BESIDE))
    assert not list(tmp_path.iterdir())


def test_what_is_there_already_is_not_needed(tmp_path: Path, disks: Disks) -> None:
    want = replace(_want(tmp_path, 0), expected=10_000_000)
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
    seen = reserve(tmp_path, _want(tmp_path, 10))
    (sibling,) = seen.siblings
    assert (sibling.path, sibling.run, sibling.arm, sibling.left) == (other, "run-9", "theirs", 10 * GB)
    assert "10.0 GB for other builds" in str(_refusal(seen))
    disks.put(tmp_path, "a", 22)
    assert _fits(reserve(tmp_path, _want(tmp_path, 10)))


def test_what_a_sibling_has_written_is_not_counted_twice(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 1)
    other = begin(tmp_path, with_env(A="1"), expected=10_000_000)
    before = reserve(tmp_path, _want(tmp_path, 0)).shares[0].others
    write_files(other, bytes(3_000_000))
    written = reserve(tmp_path, _want(tmp_path, 0)).shares[0].others
    assert before == 10_000_000
    assert 3_990_000 < written < 4_000_000
    write_files(other, bytes(9_000_000))
    assert reserve(tmp_path, _want(tmp_path, 0)).shares[0].others == 0  # more than expected is no credit


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
    reserve(tmp_path, _want(tmp_path, 1))
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
    seen = reserve(tmp_path, _want(tmp_path, 10))
    assert (seen.siblings, _fits(seen)) == ((), True)


def test_a_build_whose_lock_is_held_lives_whatever_its_builder_is(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 11)
    other = begin(tmp_path, with_env(A="1"), expected=90 * GB, builder=builder(alive=False))
    handle = KeyLock(tmp_path, other.name).exclusive()
    assert handle is not None
    assert not _fits(reserve(tmp_path, _want(tmp_path, 10)))
    os.close(handle)
    assert _fits(reserve(tmp_path, _want(tmp_path, 10)))


def test_an_unreadable_directory_that_somebody_uses_refuses(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 11)
    other = begin(tmp_path, with_env(A="1"))
    (other / ".ttx-cache.json").write_text("{")
    assert _fits(reserve(tmp_path, _want(tmp_path, 10)))
    handle = KeyLock(tmp_path, other.name).exclusive()
    assert handle is not None
    error = _refusal(reserve(tmp_path, _want(tmp_path, 10)))
    assert "cannot be told" in error.message
    os.close(handle)


def test_another_disk_has_other_room(tmp_path: Path, disks: Disks) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    disks.put(root, "a", 11)
    disks.put(other, "b", 100)
    begin(other, with_env(A="1"), expected=50 * GB)
    seen = reserve(root, _want(root, 10), roots=(other,))
    assert _fits(seen)
    assert {share.id: share.others for share in seen.shares} == {"a": 0, "b": 50 * GB}


def test_two_roots_of_one_disk_share_its_room(tmp_path: Path, disks: Disks) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    disks.put(tmp_path, "a", 11)
    begin(other, with_env(A="1"), expected=5 * GB)
    assert _fits(reserve(root, _want(root, 10)))
    assert not _fits(reserve(root, _want(root, 10), roots=(other,)))
    assert len(reserve(root, _want(root, 10), roots=(root, other, other)).siblings) == 1


def test_a_root_that_is_a_link_is_looked_at_once(tmp_path: Path, disks: Disks) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    disks.put(tmp_path, "a", 11)
    begin(root, with_env(A="1"), expected=GB)
    link.symlink_to(root)
    assert len(reserve(link, _want(link, 1), roots=(root,)).siblings) == 1


def test_one_folder_with_a_smaller_quota_decides(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 100)
    disks.put(tmp_path / "jit", "a", 2)
    assert not _fits(reserve(tmp_path, _want(tmp_path, 10)))


def test_the_kernel_cache_counts_where_it_lies(tmp_path: Path, disks: Disks) -> None:
    want = _want(tmp_path, 10, BESIDE)
    disks.put(tmp_path, "a", 13.9)
    assert not _fits(reserve(tmp_path, want))
    disks.put(tmp_path / "jit", "b", 3)
    assert _fits(reserve(tmp_path, want))
    disks.put(tmp_path / "jit", "b", 2.9)
    assert not _fits(reserve(tmp_path, want))


def test_a_kernel_cache_that_is_full_already_takes_nothing(tmp_path: Path, disks: Disks) -> None:
    want = replace(_want(tmp_path, 10), allowance=replace(NOTHING, jit_bytes=1_000_000))
    disks.put(tmp_path, "a", 11)
    assert not _fits(reserve(tmp_path, want))
    want.jit.mkdir(parents=True)
    (want.jit / "kernel").write_bytes(bytes(1_000_000))
    assert _fits(reserve(tmp_path, want))


def test_kernels_of_a_sibling_count_too(tmp_path: Path, disks: Disks) -> None:
    begin(tmp_path, with_env(A="1"), builder=builder(arm="theirs"))
    disks.put(tmp_path, "a", 100)
    seen = reserve(tmp_path, _want(tmp_path, 10, BESIDE))
    assert seen.shares[0].margin == 6 * GB + GB
    assert tmp_path / "jit/theirs-ttnn-0.81.1" in seen.shares[0].paths


def test_the_containers_folder_counts_where_it_lies(tmp_path: Path, disks: Disks) -> None:
    root, docker = tmp_path / "root", tmp_path / "docker"
    want = replace(_want(root, 10, replace(BESIDE, jit_bytes=0)), container_root=docker)
    disks.put(tmp_path, "a", 11.9)
    assert not _fits(reserve(root, want))
    disks.put(docker, "b", 1)
    assert _fits(reserve(root, want))
    disks.put(docker, "b", 0.9)
    assert not _fits(reserve(root, want))


def test_inodes_count(tmp_path: Path, disks: Disks) -> None:
    want = replace(_want(tmp_path, 1, replace(BESIDE, jit_bytes=0)), container_root=tmp_path)
    disks.put(tmp_path, "a", 100, files=341)
    assert _fits(reserve(tmp_path, want))  # 100 + 200 + 10, and a tenth
    disks.put(tmp_path, "a", 100, files=340)
    error = _refusal(reserve(tmp_path, want))
    assert "340 inodes free, and 341 are needed" in error.message
    disks.put(tmp_path, "a", 100, files=None)
    assert _fits(reserve(tmp_path, want))


def test_inodes_of_siblings_count_less_what_they_have_made(tmp_path: Path, disks: Disks) -> None:
    want = _want(tmp_path, 1, replace(BESIDE, jit_bytes=0, jit_files=0))
    other = begin(tmp_path, with_env(A="1"))
    disks.put(tmp_path, "a", 100, files=220)  # 100 of each, and a tenth
    assert _fits(reserve(tmp_path, want))
    disks.put(tmp_path, "a", 100, files=219)
    assert not _fits(reserve(tmp_path, want))
    write_files(other)
    assert _fits(reserve(tmp_path, want))


def test_a_read_only_disk_is_refused_as_such(tmp_path: Path, disks: Disks) -> None:
    disks.put(tmp_path, "a", 100, read_only=True)
    error = _refusal(reserve(tmp_path, _want(tmp_path, 1)))
    assert (error.reason, "read-only" in error.message) == ("cache_unwritable", True)


def test_a_disk_that_cannot_be_found_out_is_an_error(tmp_path: Path, disks: Disks) -> None:
    assert not disks.of
    with pytest.raises(HostError):
        reserve(tmp_path, _want(tmp_path, 1))


# --- the roots of a host ---------------------------------------------------------------------------------------------


def test_roots_are_noted_and_found(tmp_path: Path) -> None:
    locks, real = tmp_path / "locks", tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    assert known_roots(locks) == ()
    for root in (real, tmp_path / "other", tmp_path / "link"):
        with reserving(locks, root):
            assert root.resolve() in known_roots(locks)
    assert set(known_roots(locks)) == {real, tmp_path / "other"}


def test_a_note_that_says_no_place_is_no_root(tmp_path: Path) -> None:
    with reserving(tmp_path, tmp_path / "root"):
        pass
    note = note_of(tmp_path, tmp_path / "root")
    for text in ("", "{}", "[]", '{"root": 1}', '{"root": "relative"}', '{"root": "/a\\u0000"}'):
        note.write_text(text)
        assert known_roots(tmp_path) == ()


def test_one_at_a_time_reserves_whatever_its_root(tmp_path: Path) -> None:
    with (
        reserving(tmp_path / "locks", tmp_path / "one"),
        pytest.raises(CacheRefusedError, match="others reserved"),
        reserving(tmp_path / "locks", tmp_path / "two", wait_s=0.01),
    ):
        pass
    with reserving(tmp_path / "locks", tmp_path / "two", wait_s=0.01):
        pass


class _Gate:
    """What many processes wait for at once; whoever comes late finds it open."""

    def __init__(self) -> None:
        self._inner, self._outer = os.pipe()

    def wait(self) -> None:
        """Wait, in a child."""
        os.close(self._outer)
        os.read(self._inner, 1)

    def open(self) -> None:
        """Let all go, in the parent."""
        os.close(self._outer)
        os.close(self._inner)


def _race(root: Path, locks: Path, name: str, begins: _Gate, ends: _Gate) -> int:
    """Start a process that reserves and writes its marker; return where it says whether it might."""
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        return read
    answer = b"n"
    try:
        begins.wait()
        want = _want(root, 10, inputs=with_env(A=name))
        with reserving(locks, root):
            if reserve(root, want, roots=known_roots(locks)).fits:
                begin(root, with_env(A=name), expected=want.expected, builder=builder(name))
                answer = b"y"
    finally:
        os.write(write, answer)
        ends.wait()  # live until all have asked
        os._exit(0)


@pytest.mark.parametrize("roots", [1, 4])
def test_of_many_that_start_at_once_as_many_begin_as_fit(tmp_path: Path, disks: Disks, roots: int) -> None:
    disks.put(tmp_path, "a", 25)  # two of them, with their margins
    for at in range(3):
        place, begins, ends = tmp_path / str(at), _Gate(), _Gate()
        asked = [_race(place / f"root{at % roots}", place / "locks", str(at), begins, ends) for at in range(6)]
        begins.open()
        answers = [os.read(read, 1) for read in asked]
        ends.open()
        for read in asked:
            os.close(read)
            os.wait()
        assert (answers.count(b"y"), answers.count(b"n")) == (2, 4)
