"""From a start to a cache that it alone builds."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from build_kit import KEY, RUN, marker, room, standing, start_of
from cache_kit import builder, building, complete, fill, inputs_of, marker_of

from ttstack.cache.build import Held, begin
from ttstack.cache.errors import CacheRefusedError, RegistryError
from ttstack.cache.lock import state
from ttstack.cache.marker import key_of, read_marker, read_used, write_marker
from ttstack.cache.registry import read_only
from ttstack.cache.survey import survey
from ttstack.cache.types import MARKER, REGISTRY

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.cache.registry import Registry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "caches"


def test_a_new_cache_is_marked_before_anything_is_in_it_and_its_builder_is_alone(tmp_path: Path, root: Path) -> None:
    start = start_of(tmp_path, checkpoint="abc")
    held = begin(start, room)
    assert (held.warmth, held.replaced, held.folder) == ("cold", "", root / KEY)
    assert marker(root) == held.marker
    assert (held.marker.state, held.marker.expected, held.marker.checkpoint) == ("building", 1000, "abc")
    assert state(root, KEY) == "exclusive"
    assert standing(root) == "building"
    assert read_used(held.folder) is not None
    assert f"{KEY}" in read_only(root).markers
    with pytest.raises(CacheRefusedError, match=f"being built by run {RUN}.*user me"):
        begin(start, room)
    os.close(held.lock)
    with pytest.raises(CacheRefusedError, match="being built"):
        begin(start, room)  # its lock is gone, and its builder is still there


def test_files_without_a_marker_are_nobodys_and_an_empty_folder_is_ours(tmp_path: Path, root: Path) -> None:
    fill(root / KEY)
    with pytest.raises(CacheRefusedError, match="no marker") as caught:
        begin(start_of(tmp_path), room)
    assert f"ttx cache adopt {KEY} --arm try" in caught.value.hint
    assert standing(root) == "unmarked"
    other = inputs_of(mesh="P300")
    (root / key_of(other) / "P150").mkdir(parents=True)
    held = begin(start_of(tmp_path, other), room)
    assert held.warmth == "cold"
    os.close(held.lock)


@pytest.mark.parametrize("odd", ["link", "file", "foreign", "newer"])
def test_what_cannot_be_believed_is_refused_and_kept(tmp_path: Path, root: Path, odd: str) -> None:
    root.mkdir()
    match odd:
        case "link":
            (root / KEY).symlink_to(complete(tmp_path / "elsewhere"))
        case "file":
            (root / KEY).touch()
        case "foreign":
            folder = complete(root)
            (folder / MARKER).write_text((complete(root, inputs_of(mesh="P300")) / MARKER).read_text())
        case "newer":
            folder = complete(root)
            (folder / MARKER).write_text((folder / MARKER).read_text().replace('"schema": 1', '"schema": 2'))
    before = sorted(path for path in root.rglob("*") if ".ttx-" not in str(path.relative_to(root)))
    with pytest.raises(CacheRefusedError, match="cannot be used"):
        begin(start_of(tmp_path), room)
    assert sorted(path for path in root.rglob("*") if ".ttx-" not in str(path.relative_to(root))) == before
    assert state(root, KEY) == "free"


def test_a_registry_that_cannot_be_believed_stops_a_start(tmp_path: Path, root: Path) -> None:
    complete(root)
    (root / REGISTRY).write_text('{"schema": 1')
    with pytest.raises(RegistryError) as caught:
        begin(start_of(tmp_path), room)
    assert "rebuild-registry" in caught.value.hint
    assert standing(root) == "complete"


def test_no_room_leaves_nothing(tmp_path: Path, root: Path) -> None:
    def none(_registry: Registry) -> int:
        raise CacheRefusedError("no room", reason="no_space")

    with pytest.raises(CacheRefusedError, match="no room"):
        begin(start_of(tmp_path), none)
    assert survey(root) == ()
    assert state(root, KEY) == "free"


def test_of_many_starts_of_one_key_one_builds(tmp_path: Path, root: Path) -> None:
    for spoilt in (False, True):
        if spoilt:
            write_marker(root / KEY, replace(marker(root), state="broken", reason="x"))
        everybody = threading.Barrier(4)
        held: list[Held] = []
        refused: list[CacheRefusedError] = []

        def go(everybody: threading.Barrier = everybody, held: list[Held] = held) -> None:
            everybody.wait()
            try:
                held.append(begin(start_of(tmp_path), room))
            except CacheRefusedError as error:
                refused.append(error)  # noqa: B023 - the thread is over before the next round

        threads = [threading.Thread(target=go) for _ in range(everybody.parties)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(held) == 1
        assert len(refused) == everybody.parties - 1
        os.close(held[0].lock)


def test_two_builds_see_each_others_claim_before_either_writes(tmp_path: Path, root: Path) -> None:
    disk = 1500

    def small(registry: Registry) -> int:
        claimed = sum(entry.expected for entry in registry.markers.values() if entry.state == "building")
        if claimed + 1000 > disk:
            raise CacheRefusedError("it does not fit beside the other", reason="no_space")
        return 1000

    everybody = threading.Barrier(2)
    held: list[Held] = []
    refused: list[str] = []

    def go(mesh: str) -> None:
        everybody.wait()
        try:
            held.append(begin(start_of(tmp_path, inputs_of(mesh=mesh)), small))
        except CacheRefusedError as error:
            refused.append(error.reason)

    threads = [threading.Thread(target=go, args=(mesh,)) for mesh in ("P150", "P300")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), refused) == (1, ["no_space"])
    assert len([entry for entry in survey(root) if entry.standing == "building"]) == 1
    os.close(held[0].lock)


def test_a_remote_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.cache.build.is_local", lambda _root: False)
    with pytest.raises(CacheRefusedError, match="network"):
        begin(start_of(tmp_path), room)


def test_marker_kit_is_what_a_start_writes(tmp_path: Path) -> None:
    """The other tests' markers are those of a real build."""
    held = begin(start_of(tmp_path), room)
    made = building(tmp_path / "other")
    theirs = read_marker(made)
    assert theirs is not None
    assert replace(held.marker, made="", builder=builder(), expected=0) == replace(theirs, made="")
    assert marker_of().key == KEY
    os.close(held.lock)
