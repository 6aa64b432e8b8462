"""What each directory under a root turns out to be."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cache_kit import builder, building, complete, fill, inputs_of, marker_of

from ttstack.cache import survey as room
from ttstack.cache.errors import NoSuchCacheError
from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.sizes import Size, measure
from ttstack.cache.survey import builder_lives, standing_of, survey
from ttstack.cache.tree import folder_at, root_of
from ttstack.cache.types import LOCKS, MARKER, NEW, REGISTRY, TRASH, USED, Marker
from ttstack.host.process import boot_id, identify

if TYPE_CHECKING:
    from pathlib import Path

KEY = marker_of().key


def standings(root: Path) -> dict[str, str]:
    return {one.path.relative_to(root).as_posix(): one.standing for one in survey(root)}


def test_a_root_with_all_there_can_be(tmp_path: Path) -> None:
    whole = complete(tmp_path)
    cut = building(tmp_path, inputs_of(mesh="a"))
    live = building(tmp_path, inputs_of(mesh="b"), builder=builder(alive=True))
    bad = building(tmp_path, inputs_of(mesh="c"), state="broken", reason="the disk was full")
    odd = building(tmp_path, inputs_of(mesh="d"))
    (odd / MARKER).write_text("")
    fill(tmp_path / ("0" * 16))
    (tmp_path / ("1" * 16)).symlink_to(whole)
    for name in (
        "tt_metal_cache/cache_x",
        ".hidden",
        f"{TRASH}/{KEY}.ab",
        LOCKS,
        "jit/kernels",
        "jit/.tmp",
        NEW,
        f"jit/{NEW}",
        "UPPER",
        "F" * 16,
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "jit" / "try-sim").mkdir()
    write_marker(tmp_path / "jit/try-sim", replace(marker_of(), kind="jit", key="try-sim", state="complete"))
    (tmp_path / REGISTRY).write_text("")
    (tmp_path / "notes.txt").write_text("")
    before = sorted(tmp_path.rglob("*"))
    assert standings(tmp_path) == {
        whole.name: "complete",
        cut.name: "abandoned",
        live.name: "building",
        bad.name: "broken",
        odd.name: "unreadable",
        "0" * 16: "unmarked",
        "1" * 16: "not ours",
        "tt_metal_cache": "not ours",
        ".hidden": "not ours",
        f"{TRASH}/{KEY}.ab": "trash",
        "jit/kernels": "not ours",
        "jit/.tmp": "not ours",
        NEW: "trash",
        f"jit/{NEW}": "not ours",
        "jit/try-sim": "complete",
        "UPPER": "not ours",
        "F" * 16: "not ours",
    }
    assert sorted(tmp_path.rglob("*")) == before
    texts = {one.key: one.text for one in survey(tmp_path)}
    assert texts[bad.name] == "the disk was full"
    assert "is not JSON" in texts[odd.name]
    assert texts["1" * 16] == "it is a link"
    assert texts[cut.name] == "run 20260101T000000-aaaaaa did not end it, and is gone"


def test_nothing_is_nothing(tmp_path: Path) -> None:
    assert survey(tmp_path / "absent") == ()
    with pytest.raises(NoSuchCacheError):
        standing_of(tmp_path / KEY)


def test_a_link_to_the_trash_or_to_kernel_caches_is_not_looked_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/mine").mkdir(parents=True)
    (tmp_path / TRASH).symlink_to("elsewhere")
    (tmp_path / "jit").symlink_to("elsewhere")
    assert standings(tmp_path) == {TRASH: "not ours", "jit": "not ours", "elsewhere": "not ours"}


def test_a_held_lock_builds_though_its_builder_is_not_seen(tmp_path: Path) -> None:
    folder = building(tmp_path)
    assert standing_of(folder).standing == "abandoned"
    lock = KeyLock(tmp_path, KEY).exclusive()
    assert lock is not None
    seen = standing_of(folder)
    assert (seen.standing, seen.text) == ("building", "its lock is held")
    os.close(lock)
    assert standing_of(folder).standing == "abandoned"


def test_a_lock_that_cannot_be_looked_at_may_be_held(tmp_path: Path) -> None:
    folder = building(tmp_path)
    (tmp_path / LOCKS).mkdir()
    (tmp_path / LOCKS / KEY).symlink_to("guard")
    (tmp_path / LOCKS / "guard").touch()
    seen = standing_of(folder)
    assert seen.standing == "building"
    assert "cannot be told" in seen.text


def test_a_builder_is_believed_on_its_own_boot_and_in_its_own_namespace_only() -> None:
    me = builder(alive=True)
    assert builder_lives(me)
    assert not builder_lives(replace(me, boot="another"))
    assert not builder_lives(replace(me, pid_namespace=1))
    assert not builder_lives(replace(me, process=replace(me.process, start=me.process.start + 1)))


def test_a_builder_that_was_killed_abandons(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = identify(process.pid)
        assert name is not None
        folder = building(tmp_path, builder=replace(builder(), process=name, boot=boot_id()))
        assert standing_of(folder).standing == "building"
        process.kill()
        process.wait(10)
        assert standing_of(folder).standing == "abandoned"


def test_one_that_ends_between_two_looks_was_never_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = building(tmp_path)

    def completes(*_: object) -> str:
        if (marker := read_marker(folder)) is not None and marker.state == "building":
            write_marker(folder, replace(marker, state="complete", completed="now"))
        return "free"

    monkeypatch.setattr(room.lock, "state", completes)
    assert standing_of(folder).standing == "complete"


def test_one_that_goes_away_while_all_are_looked_at_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = sorted(complete(tmp_path, inputs_of(mesh=mesh)) for mesh in "abc")
    look = room.read_marker

    def gone(folder: Path) -> Marker | None:
        if third.exists():
            third.rename(tmp_path / "renamed")
            second.rename(tmp_path / "0")
            second.symlink_to("0")
        return look(folder)

    monkeypatch.setattr(room, "read_marker", gone)
    assert [(one.path, one.standing) for one in survey(tmp_path)] == [(first, "complete"), (second, "unreadable")]


def test_the_last_use_is_told(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    os.utime(folder / USED, (5, 7))
    assert standing_of(folder).used == 7
    (folder / USED).unlink()
    assert standing_of(folder).used is None


@pytest.mark.parametrize(
    ("path", "may"),
    [
        (KEY, True),
        ("jit/x", True),
        ("jit/..", False),
        ("jit/.x", False),
        ("jit/", False),
        ("jit", False),
        ("jit/x/y", False),
        (f"x/{KEY}", False),
        (f"{KEY}/", False),
        (f"/{KEY}", False),
        ("..", False),
        ("", False),
        ("jit/x\0y", False),
    ],
)
def test_where_a_directory_of_ours_may_be(path: str, may: bool) -> None:  # noqa: FBT001 - an expectation
    assert folder_at(path) is may


def test_the_root_of_a_directory(tmp_path: Path) -> None:
    jit = tmp_path / "jit"
    assert root_of(tmp_path / KEY) == tmp_path
    assert root_of(jit / KEY) == jit  # a root that somebody called jit
    assert root_of(jit / "x-y") == tmp_path
    assert root_of(jit / NEW) == jit


def test_files_with_names_in_two_caches_are_shared_and_counted_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    (one / "own").write_bytes(b"x" * 8192)
    (one / "linked").write_bytes(b"x" * 4096)
    (two / "linked").hardlink_to(one / "linked")
    (two / "twice").write_bytes(b"x" * 4096)
    (two / "again").hardlink_to(two / "twice")
    (two / "out").write_bytes(b"x" * 4096)
    (tmp_path / "out").hardlink_to(two / "out")
    sizes = measure([one, two])
    blocks = {
        name: (tmp_path / name).stat().st_blocks * 512 for name in ("one/own", "one/linked", "two/twice", "two/out")
    }
    assert sizes.each[one] == Size(blocks["one/own"], blocks["one/linked"])
    assert sizes.each[two] == Size(blocks["two/twice"], blocks["one/linked"] + blocks["two/out"])
    assert sizes.total == sum(blocks.values())
    assert measure([tmp_path / "absent"]).total == 0
