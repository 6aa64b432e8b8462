"""What seeding must not do: follow links, take what changed, leave a part of it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from seed_kit import (
    FIRST,
    INSIDE,
    NAMES,
    files_of,
    finish,
    no_reflink,
    pair,
    write_files,
)

from ttstack.cache import transfer
from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.lock import KeyLock
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.seed import seed
from ttstack.cache.survey import standing_of
from ttstack.cache.types import FileEntry

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["pair"]


@pytest.mark.parametrize("how", ["link", "folder link", "pipe"])
@pytest.mark.parametrize("by_rename", [True, False])
def test_no_link_is_followed(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str, *, by_rename: bool
) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    secret = tmp_path / "elsewhere"
    (source / INSIDE).rename(secret)
    if how == "folder link":
        (source / INSIDE).symlink_to(secret)
    else:
        (source / INSIDE).mkdir()
        for name in NAMES:
            if how == "link":
                (source / INSIDE / name).symlink_to(secret / name)
            else:
                os.mkfifo(source / INSIDE / name)
    with pytest.raises(CacheError):
        seed(source, target, by_rename=by_rename)
    assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names


@pytest.mark.parametrize("by_rename", [True, False])
def test_a_link_that_a_manifest_tells_of_is_no_file(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, *, by_rename: bool
) -> None:
    """Its own size and time are those of the manifest, so only its kind tells."""
    no_reflink(monkeypatch)
    source, target = pair
    (source / FIRST).rename(source / INSIDE / "other")
    (source / FIRST).symlink_to("other")
    seen = (source / FIRST).lstat()
    write_manifest(source, [FileEntry(FIRST, seen.st_size, seen.st_mtime_ns)])
    with pytest.raises(CacheError):
        seed(source, target, by_rename=by_rename)
    assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names


def test_a_target_whose_folder_is_a_link_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = pair
    outside = tmp_path / "outside"
    outside.mkdir()
    (target / "P150x2").symlink_to(outside)
    with pytest.raises(CacheError):
        seed(source, target, by_rename=True)
    assert not list(outside.iterdir())


@pytest.mark.parametrize("by_rename", [True, False])
def test_a_file_that_is_not_what_the_manifest_says_undoes_all_of_it(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, *, by_rename: bool
) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    os.utime(source / INSIDE / NAMES[1])  # same size: only its time tells that it was written to
    with pytest.raises(CacheError, match="is not as it was"):
        seed(source, target, by_rename=by_rename)
    assert scan(target) == ()
    assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names
    assert (source / FIRST).stat().st_nlink == 1


def test_a_full_disk_undoes_all_of_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(CacheError, match="No space left"):
        seed(*pair, by_rename=False)
    assert os.listdir(pair[1]) == [".ttx-cache.json"]  # noqa: PTH208 - names


def test_an_interrupt_undoes_all_of_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)
    monkeypatch.setattr(transfer, "CHUNK", 4)
    os.truncate(pair[0] / FIRST, 4 << 20)
    finish(pair[0])

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transfer, "CHUNK", 1 << 20)
    with pytest.raises(KeyboardInterrupt):
        seed(*pair, by_rename=False, progress=stop)
    assert os.listdir(pair[1]) == [".ttx-cache.json"]  # noqa: PTH208 - names


def test_killed_while_copying_it_is_a_directory_that_is_being_built(pair: tuple[Path, Path]) -> None:
    source, target = pair
    pid = os.fork()
    if not pid:
        transfer._clone = lambda *_: False
        transfer.give = lambda *_: os.kill(os.getpid(), 9)
        try:
            seed(source, target, by_rename=False)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 9
    assert standing_of(target).standing == "building"
    assert all(not path.endswith("tensorbin") for path in files_of(target))  # no half a file under its own name
    assert standing_of(source).standing == "complete"
    assert KeyLock(source.parent, source.name).exclusive() is not None  # and nobody holds it any more


@pytest.mark.parametrize("what", ["no marker", "complete", "files", "broken and empty"])
def test_only_a_new_cache_is_seeded(pair: tuple[Path, Path], what: str) -> None:
    source, target = pair
    if what == "no marker":
        (target / ".ttx-cache.json").unlink()
    elif what == "broken and empty":
        finish(target, "broken")
    else:
        write_files(target, b"mine")
        if what == "complete":
            finish(target)
    before = files_of(target)
    with pytest.raises(CacheError, match="no empty cache"):
        seed(source, target, by_rename=True)
    assert files_of(target) == before


def test_nothing_is_taken_from_a_cache_that_is_built_or_not_complete(pair: tuple[Path, Path]) -> None:
    source, target = pair
    handle = KeyLock(source.parent, source.name).exclusive()
    assert handle is not None
    with pytest.raises(CacheRefusedError, match="being built"):
        seed(source, target, by_rename=True)
    os.close(handle)
    finish(source, "broken")
    with pytest.raises(CacheRefusedError, match="not complete"):
        seed(source, target, by_rename=True)


def test_the_source_is_locked_while_it_is_read(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    held: list[int | None] = []
    seed(
        source,
        target,
        by_rename=False,
        progress=lambda *_: held.append(KeyLock(source.parent, source.name).exclusive()),
    )
    assert held
    assert set(held) == {None}
