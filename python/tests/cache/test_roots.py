"""The cache roots of a host, and who may reserve room when."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from reserve_kit import Disks, disks, want_of
from seed_kit import begin, builder, with_env

from ttstack.cache.errors import CacheRefusedError
from ttstack.cache.reserve import reserve
from ttstack.cache.roots import known_roots, note_of, reserving

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["disks"]


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
        want = want_of(root, 10, inputs=with_env(A=name))
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
