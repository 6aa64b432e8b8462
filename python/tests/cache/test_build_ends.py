"""How each end of a build leaves a cache."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from build_kit import KEY, RUN, cut, leftover, marker, room, standing, start_of
from cache_kit import builder, fill, inputs_of

from ttstack.cache import dirs, settle
from ttstack.cache.build import begin
from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.lock import state
from ttstack.cache.registry import read_only
from ttstack.cache.survey import survey
from ttstack.cache.types import MANIFEST, MARKER, USED
from ttstack.host.errors import HostError
from ttstack.host.files import write_atomic
from ttstack.run.link import python_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ttstack.cache.types import Directory, FileEntry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "caches"


def test_a_build_that_was_identified_is_complete_and_shared(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    copy = os.dup(held.lock)  # the engine's
    fill(held.folder, files=3)
    whole = settle.complete(root, KEY, RUN, held.lock)
    os.close(held.lock)
    assert (whole.state, whole.files, whole.reason) == ("complete", 3, "")
    assert whole.bytes == sum(path.stat().st_size for path in (root / KEY / "P150").iterdir())
    assert whole.completed >= whole.made
    assert marker(root) == whole
    assert {path.name for path in (root / KEY).iterdir()} == {MARKER, USED, MANIFEST, "P150"}
    assert state(root, KEY) == "shared"
    again = begin(start_of(tmp_path), room)
    assert (again.warmth, again.marker) == ("hit", whole)
    assert state(root, KEY) == "shared"
    assert read_only(root).expected_bytes(inputs_of()) == whole.bytes
    os.close(again.lock)
    os.close(copy)


def test_its_files_are_on_the_disk_before_it_is_called_complete(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder, files=3)
    wanted = {path.stat().st_ino for path in (held.folder / "P150").iterdir()}
    synced: set[int] = set()
    real = os.fsync

    def fsync(handle: int) -> None:
        if marker(root).state == "building":
            synced.add(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    settle.complete(root, KEY, RUN, held.lock)
    assert wanted <= synced
    os.close(held.lock)


UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda folder: [path.unlink() for path in (folder / "P150").iterdir()], "wrote nothing"),
    "an empty file": (lambda folder: (folder / "P150" / "w").touch(), "w: it is empty"),
    "a temporary file": (leftover, "left over"),
    "a cut file": (cut, "truncated or corrupt"),
    "a link": (lambda folder: (folder / "P150" / "w").symlink_to("/etc/passwd"), "a link"),
}


@pytest.mark.parametrize(("spoil", "text"), UNFIT.values(), ids=UNFIT)
def test_what_is_not_whole_is_broken_and_the_next_start_builds_it_anew(
    tmp_path: Path, root: Path, spoil: Callable[[Path], object], text: str
) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    spoil(held.folder)
    with pytest.raises(CacheError, match=text) as caught:
        settle.complete(root, KEY, RUN, held.lock)
    assert caught.value.reason == "cache_broken"
    assert (marker(root).state, text in marker(root).reason) == ("broken", True)
    assert state(root, KEY) == "exclusive"  # whoever runs on it still has it alone
    with pytest.raises(CacheRefusedError, match="in use by another run"):
        begin(start_of(tmp_path), room)
    os.close(held.lock)
    told: list[str] = []
    again = begin(start_of(tmp_path), room, tell=told.append)
    assert text in again.replaced
    assert again.warmth == "cold"
    assert any(text in line for line in told)
    assert not (root / KEY / "P150").exists()
    assert [entry for entry in survey(root) if entry.standing == "trash"] == []
    os.close(again.lock)


def test_only_the_builders_run_settles_a_build(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    assert not settle.fail(root, KEY, "another", "x")
    assert not settle.withdraw(root, KEY, "another")
    with pytest.raises(CacheError, match="no longer being built by run another"):
        settle.complete(root, KEY, "another", held.lock)
    assert standing(root) == "building"
    assert settle.fail(root, KEY, RUN, "the disk was full")
    assert (standing(root), marker(root).reason) == ("broken", "the disk was full")
    assert not settle.fail(root, KEY, RUN, "something else")
    assert marker(root).reason == "the disk was full"  # who is first tells why
    with pytest.raises(CacheError, match="broken"):
        settle.complete(root, KEY, RUN, held.lock)
    os.close(held.lock)


def test_a_complete_cache_is_neither_failed_nor_withdrawn(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    settle.complete(root, KEY, RUN, held.lock)
    assert not settle.fail(root, KEY, RUN, "x")
    assert not settle.withdraw(root, KEY, RUN)
    assert standing(root) == "complete"
    assert not settle.fail(root, "f" * 16, RUN, "x")
    os.close(held.lock)


def test_a_build_without_an_engine_is_taken_back(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    assert settle.withdraw(root, KEY, RUN)
    assert not (root / KEY).exists()
    assert survey(root) == ()
    os.close(held.lock)


def test_when_all_of_ours_are_killed_it_is_abandoned_and_built_anew(tmp_path: Path, root: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from build_kit import room, start_of; from ttstack.cache.build import begin\n"
        "held = begin(start_of(Path(sys.argv[1])), room)\n"
        "(held.folder / 'half').write_bytes(b'x')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path), os.path.dirname(__file__)]  # noqa: PTH120
    subprocess.run(words, env={"PYTHONPATH": python_path()}, check=False, capture_output=True, timeout=60)
    assert standing(root) == "abandoned"
    used: list[str] = []

    def in_use(directory: Directory) -> str:
        used.append(directory.standing)
        return "container abc"

    with pytest.raises(CacheRefusedError, match="container abc still has it"):
        begin(start_of(tmp_path), room, in_use=in_use)
    assert used == ["abandoned"]
    assert standing(root) == "abandoned"
    assert state(root, KEY) == "free"
    held = begin(start_of(tmp_path), room)
    assert held.replaced
    assert not (held.folder / "half").exists()
    os.close(held.lock)


def test_a_supervisor_that_takes_over_is_the_builder(tmp_path: Path, root: Path) -> None:
    os.close(begin(start_of(tmp_path, builder=builder()), room).lock)
    assert standing(root) == "abandoned"
    settle.take_over(root, KEY, replace(builder(alive=True), run="another"))
    assert standing(root) == "abandoned"
    settle.take_over(root, KEY, builder(alive=True))
    assert standing(root) == "building"


def test_a_marker_that_was_settled_while_the_build_was_judged_stays(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watchdog of the same run may find the disk full while the last files are synced."""
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    sync = settle.sync_files

    def fails(folder: Path, files: tuple[FileEntry, ...]) -> None:
        sync(folder, files)
        assert settle.fail(root, KEY, RUN, "the disk was full")

    monkeypatch.setattr(settle, "sync_files", fails)
    with pytest.raises(CacheError, match="no longer being built"):
        settle.complete(root, KEY, RUN, held.lock)
    assert (standing(root), marker(root).reason) == ("broken", "the disk was full")
    os.close(held.lock)


def test_a_disk_that_a_build_filled_still_takes_the_word_broken(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begin(start_of(tmp_path), room)
    spare = held.folder / dirs.SPARE
    assert spare.stat().st_blocks * 512 >= 8192
    real = write_atomic

    def full(path: Path, data: bytes) -> None:
        if spare.exists():
            raise HostError("full") from OSError(errno.ENOSPC, "No space left on device")
        real(path, data)

    monkeypatch.setattr("ttstack.cache.marker.write_atomic", full)
    assert settle.fail(root, KEY, RUN, "no space left")
    assert (standing(root), marker(root).reason) == ("broken", "no space left")
    os.close(held.lock)
