"""What a start makes of a complete cache, and of one that it may begin with."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from build_kit import KEY, RUN, cut, leftover, marker, room, standing, start_of
from cache_kit import complete, inputs_of

from ttstack.cache import build, settle
from ttstack.cache.build import begin
from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.lock import KeyLock, state
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.survey import standing_of
from ttstack.cache.types import MANIFEST
from ttstack.cache.verify import Fault

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "caches"


@pytest.mark.parametrize("damage", ["cut", "gone", "empty", "manifest"])
def test_a_complete_cache_is_looked_through_before_it_is_used(tmp_path: Path, root: Path, damage: str) -> None:
    folder = complete(root)
    path = next((folder / "P150").iterdir())
    match damage:
        case "cut":
            cut(folder)
        case "gone":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "manifest":
            (folder / MANIFEST).write_text("{")
    reader = KeyLock(root, KEY).shared()
    assert reader is not None
    with pytest.raises(CacheRefusedError, match="in use by another run"):
        begin(start_of(tmp_path), room)  # it is broken, and somebody runs on it
    assert standing(root) == "broken"
    os.close(reader)
    held = begin(start_of(tmp_path), room)
    assert held.replaced
    assert marker(root).state == "building"
    os.close(held.lock)


def test_what_came_later_breaks_nothing_unless_it_could_be_loaded(tmp_path: Path, root: Path) -> None:
    folder = complete(root)
    (folder / "P150" / "empty_kcache").write_bytes(b"12345")  # whole as far as anybody can tell
    leftover(folder)  # never loaded
    held = begin(start_of(tmp_path), room)
    assert held.warmth == "hit"
    (folder / "P150" / "later").touch()
    other = begin(start_of(tmp_path), room)  # the first may be writing it just now
    assert other.warmth == "hit"
    os.close(held.lock)
    os.close(other.lock)
    last = begin(start_of(tmp_path), room)
    assert "later: it is empty" in last.replaced
    os.close(last.lock)


def test_a_complete_one_that_somebody_has_alone_is_refused(tmp_path: Path, root: Path) -> None:
    complete(root)
    alone = KeyLock(root, KEY).exclusive()  # as gc has it before the rename
    assert alone is not None
    with pytest.raises(CacheRefusedError, match="for himself"):
        begin(start_of(tmp_path), room)
    assert standing(root) == "complete"
    os.close(alone)


def test_a_marker_that_was_changed_while_its_cache_was_looked_through_is_not_written_over(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = complete(root)
    trusted = replace(marker(root), checkpoint="new")

    def trusts(_: Path) -> tuple[Fault, ...]:
        write_marker(folder, trusted)
        return (Fault("w", "it is empty", "empty"),)

    monkeypatch.setattr(build, "verify", trusts)
    with pytest.raises(CacheRefusedError, match="checkpoint"):
        begin(start_of(tmp_path), room)
    assert marker(root) == trusted


def test_a_file_that_was_being_written_while_it_was_looked_through_is_looked_at_again(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine that wrote it let go of the cache between the look at the file and that at the lock."""
    folder = complete(root)
    engine = KeyLock(root, KEY).shared()
    assert engine is not None
    later = folder / "P150" / "later"
    later.touch()
    look = build.verify

    def ends(path: Path) -> tuple[Fault, ...]:
        found = look(path)
        if not later.stat().st_size:
            later.write_bytes(b"whole")
            os.close(engine)
        return found

    monkeypatch.setattr(build, "verify", ends)
    held = begin(start_of(tmp_path), room)
    assert (held.warmth, standing(root)) == ("hit", "complete")
    os.close(held.lock)


def test_another_checkpoint_is_refused_and_harms_nothing(tmp_path: Path, root: Path) -> None:
    complete(root, checkpoint="old")
    for new in ("new", ""):
        with pytest.raises(CacheRefusedError) as caught:
            begin(start_of(tmp_path, checkpoint=new), room)
        assert caught.value.reason == "checkpoint_changed"
        assert "revision" in caught.value.hint
        assert f"ttx cache trust {KEY}" in caught.value.hint
    assert standing(root) == "complete"
    assert state(root, KEY) == "free"
    held = begin(start_of(tmp_path, checkpoint="old"), room)
    assert held.warmth == "hit"
    os.close(held.lock)


def test_a_seed_that_does_not_work_costs_nothing_but_the_seed(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = complete(root, inputs_of(env={"BF4": "1"}))
    start = start_of(tmp_path, inputs_of(env={"BF4": "0"}), in_name=("BF4",), by_rename=True)
    told: list[str] = []
    held = begin(start, room, tell=told.append)
    assert (held.warmth, held.marker.seeded_from, held.seeded > 0) == ("seed", source.name, True)
    assert any(source.name in line for line in told)
    assert settle.withdraw(root, start.key, RUN)
    os.close(held.lock)

    def fails(*_: object, **__: object) -> None:
        raise CacheError("no link, no copy")

    monkeypatch.setattr("ttstack.cache.build.seed", fails)
    held = begin(start, room, tell=told.append)
    assert (held.warmth, held.marker.seeded_from, held.seeded) == ("cold", "", 0)
    assert read_marker(held.folder) == held.marker
    assert "no link, no copy" in told[-1]
    assert settle.withdraw(root, start.key, RUN)
    os.close(held.lock)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ttstack.cache.build.seed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begin(start, room)
    assert not start.folder.exists()
    assert state(root, start.key) == "free"
    assert standing_of(source).standing == "complete"


def test_a_seed_that_was_written_into_breaks_both(tmp_path: Path, root: Path) -> None:
    source = complete(root, inputs_of(env={"BF4": "1"}))
    start = start_of(tmp_path, inputs_of(env={"BF4": "0"}), in_name=("BF4",), by_rename=True)
    held = begin(start, room)
    seeded = next((held.folder / "P150").iterdir())
    if seeded.stat().st_nlink < 2:
        pytest.skip("seeds are no hard links on this disk")
    with seeded.open("r+b") as file:
        file.write(b"\0" * 64)
    with pytest.raises(CacheError, match="in place"):
        settle.complete(root, start.key, RUN, held.lock)
    assert [standing_of(path).standing for path in (source, held.folder)] == ["broken", "broken"]
    os.close(held.lock)
