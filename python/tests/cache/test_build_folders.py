"""The folders of caches, as starts make them and find them."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from build_kit import KEY, room, standing, start_of
from cache_kit import builder, fill

from ttstack.cache import dirs
from ttstack.cache.build import begin
from ttstack.cache.errors import CacheError
from ttstack.cache.lock import state
from ttstack.cache.marker import read_marker, read_used
from ttstack.cache.survey import standing_of, survey
from ttstack.cache.types import MARKER, NEW, REGISTRY, USED
from ttstack.host.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "caches"


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path, root: Path) -> None:
    root.write_text("a file")
    with pytest.raises((CacheError, HostError)) as caught:
        begin(start_of(tmp_path), room)
    assert "TTX_CACHE" in caught.value.hint


def test_what_a_start_left_that_was_killed_as_it_made_a_directory_is_trash_and_goes(tmp_path: Path, root: Path) -> None:
    new = root / NEW
    new.mkdir(parents=True)
    (new / dirs.SPARE).write_bytes(b"x")
    (new / f".{MARKER}.5d41402a").write_bytes(b"{")  # as it was written
    assert [(one.key, one.standing) for one in survey(root)] == [(NEW, "trash")]
    held = begin(start_of(tmp_path), room)
    assert [(one.key, one.standing) for one in survey(root)] == [(KEY, "building")]
    os.close(held.lock)


def test_what_others_put_in_the_place_of_a_new_directory_is_kept(tmp_path: Path, root: Path) -> None:
    new = root / NEW
    fill(new)
    assert [one.standing for one in survey(root)] == ["not ours"]
    with pytest.raises(CacheError, match="in the way") as caught:
        begin(start_of(tmp_path), room)
    assert "move it away" in caught.value.hint
    assert state(root, KEY) == "free"
    assert (new / "P150").is_dir()
    new.rename(tmp_path / "elsewhere")
    (tmp_path / "empty").mkdir()
    new.symlink_to(tmp_path / "empty")
    with pytest.raises(CacheError, match="in the way"):
        begin(start_of(tmp_path), room)
    assert (tmp_path / "empty").is_dir()


def test_an_empty_folder_that_somebody_made_is_used_where_it_is(tmp_path: Path, root: Path) -> None:
    (root / KEY).mkdir(parents=True)
    jit = root / "jit" / "try-sim"
    jit.mkdir(parents=True)
    before = [folder.stat().st_ino for folder in (root / KEY, jit)]
    held = begin(start_of(tmp_path), room)
    dirs.mark_jit(jit, builder(), None)
    assert [folder.stat().st_ino for folder in (root / KEY, jit)] == before
    assert (standing(root), standing_of(jit).standing) == ("building", "complete")
    os.close(held.lock)


def test_a_new_directory_belongs_to_the_engines_user(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, user, _group: given.append((str(path), user)))
    os.close(begin(start_of(tmp_path, owner=12345), room).lock)
    dirs.mark_jit(root / "jit" / "try-sim", builder(), 12345)
    assert given == [(str(root / NEW), 12345)] * 2  # before they have their names


@pytest.mark.parametrize("name", ["write_marker", "touch_used", "put_spare", "sync_folder"])
def test_a_directory_that_could_not_be_made_leaves_nothing_unmarked(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(dirs, name, fails)
        with pytest.raises(CacheError, match="No space left"):
            begin(start_of(tmp_path), room)
    assert state(root, KEY) == "free"
    assert {one.standing for one in survey(root)} <= {"building"}
    assert not (root / NEW).exists()


def test_kernel_caches_are_marked_when_they_are_new(tmp_path: Path) -> None:
    root = tmp_path / "caches"
    new, old = root / "jit" / "try-ttnn-1", root / "jit" / "old-ttnn-1"
    dirs.mark_jit(new, builder(), None)
    made = read_marker(new)
    assert made is not None
    assert (made.kind, made.state, made.key) == ("jit", "complete", "try-ttnn-1")
    assert '"jit/try-ttnn-1"' in (root / REGISTRY).read_text()  # it was made under the registry's lock
    os.utime(new / USED, (1, 1))
    (new / "kernel").touch()
    dirs.mark_jit(new, replace(builder(), run="later"), None)
    assert read_marker(new) == made
    assert read_used(new) != 1
    old.mkdir()
    (old / "kernel").touch()
    dirs.mark_jit(old, builder(), None)
    assert read_marker(old) is None
    assert not (old / USED).exists()
