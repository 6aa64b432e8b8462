from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from mount_kit import tmpfs

from ttstack.cache import trash
from ttstack.cache.errors import CacheError
from ttstack.cache.trash import Scales, discard, remove, to_trash, trash_of
from ttstack.cache.types import TRASH

if TYPE_CHECKING:
    from pathlib import Path

KEY, OTHER = "0123456789abcdef", "fedcba9876543210"
ROOT_USER = os.geteuid() == 0


def fill(folder: Path, *names: str, size: int = 20_000) -> Path:
    for name in names or ("a", "in/b"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * size)
    return folder


def on_disk(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in [folder, *folder.rglob("*")])


def test_a_directory_goes_by_one_rename_and_then_file_by_file(tmp_path: Path) -> None:
    folder = fill(tmp_path / KEY)
    held = on_disk(folder)
    place = to_trash(folder)
    assert not folder.exists()
    assert place.parent == tmp_path / TRASH
    assert place.name.startswith(f"{KEY}.")
    weight = remove(place)
    assert (weight.files, weight.bytes, weight.freed) == (2, 40_000, held)
    assert list((tmp_path / TRASH).iterdir()) == []


def test_a_kernel_cache_goes_to_the_trash_of_the_root(tmp_path: Path) -> None:
    folder = fill(tmp_path / "jit" / "prod-ttnn-1")
    assert to_trash(folder).parent == tmp_path / TRASH


def test_the_same_name_can_be_thrown_away_twice(tmp_path: Path) -> None:
    for _ in range(2):
        to_trash(fill(tmp_path / KEY))
    assert len(list((tmp_path / TRASH).iterdir())) == 2


def test_a_link_in_it_is_removed_and_not_followed(tmp_path: Path) -> None:
    kept = fill(tmp_path / "kept")
    folder = fill(tmp_path / KEY)
    (folder / "out").symlink_to(kept)
    (folder / "in" / "file").symlink_to(kept / "a")
    discard(folder)
    assert (kept / "a").exists()
    assert (kept / "in" / "b").exists()


def test_a_trash_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    folder = fill(tmp_path / KEY)
    (tmp_path / "home").mkdir()
    (tmp_path / TRASH).symlink_to(tmp_path / "home")
    with pytest.raises(CacheError, match="ttx did not make it"):
        to_trash(folder)
    assert (folder / "a").exists()


def test_only_what_lies_in_the_trash_is_removed(tmp_path: Path) -> None:
    folder = fill(tmp_path / KEY)
    with pytest.raises(CacheError, match="does not lie in the trash"):
        remove(folder)
    assert (folder / "in" / "b").exists()


def test_what_others_remove_meanwhile_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = to_trash(fill(tmp_path / KEY, "a", "b", "in/c"))
    names = trash._names

    def first_listed_then_gone(handle: int) -> list[str]:
        listed = names(handle)
        (place / "a").unlink(missing_ok=True)
        return listed

    monkeypatch.setattr(trash, "_names", first_listed_then_gone)
    assert remove(place).files == 2
    assert remove(place).files == 0  # gone


def test_an_interrupted_removal_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = to_trash(fill(tmp_path / KEY, *map(str, range(9))))
    unlink = os.unlink
    left = 4

    def killed(*words: object, **more: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        unlink(*words, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(place)
    assert len(list(place.iterdir())) == 5
    assert remove(place).files == 5
    assert not place.exists()


def test_a_read_only_folder_goes_too(tmp_path: Path) -> None:
    folder = fill(tmp_path / KEY)
    (folder / "in").chmod(0o500)
    discard(folder)
    assert list((tmp_path / TRASH).iterdir()) == []


def test_folders_that_no_cache_has_are_left(tmp_path: Path) -> None:
    folder = tmp_path / KEY
    fill(folder, "/".join("d" * (trash._DEEPEST + 3)) + "/f")
    place = to_trash(folder)
    with pytest.raises(CacheError, match="deep"):
        remove(place)


def test_a_file_is_freed_with_its_last_link(tmp_path: Path) -> None:
    one, two, kept = fill(tmp_path / KEY), fill(tmp_path / OTHER, "own"), fill(tmp_path / "kept", "own")
    os.link(one / "a", two / "linked")  # goes with both
    os.link(kept / "own", one / "seed")  # stays
    os.link(one / "in" / "b", one / "again")  # twice in one
    scales = Scales()
    weighed = [scales.weigh(one), scales.weigh(two)]
    removed = [discard(one), discard(two)]
    assert weighed == removed
    block = (kept / "own").stat().st_blocks * 512
    folders = removed[0].freed - block  # one/in/b alone, and the folders
    assert 0 <= folders < 2 * 65536
    assert removed[1].freed >= 2 * block  # its own, and what was linked from the first
    assert (kept / "own").stat().st_nlink == 1


def test_weighing_twice_on_other_scales_is_no_freeing(tmp_path: Path) -> None:
    one = fill(tmp_path / KEY, "a")
    kept = fill(tmp_path / "kept", "k")
    os.link(kept / "k", one / "k")
    first, second = Scales().weigh(one), Scales().weigh(one)
    assert first == second
    assert first.bytes == 40_000
    assert first.freed < 40_000 + 2 * 65536


def test_a_missing_trash_is_no_fault(tmp_path: Path) -> None:
    assert trash_of(tmp_path) == tmp_path / TRASH


def test_who_may_remove_caches_may_use_the_trash(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o1777)
    to_trash(fill(root / KEY))
    assert (root / TRASH).stat().st_mode & 0o7777 == 0o1777


@pytest.mark.host
@pytest.mark.skipif(not ROOT_USER, reason="only root mounts")
def test_another_file_system_in_it_is_not_entered(tmp_path: Path) -> None:
    folder = fill(tmp_path / KEY)
    (folder / "m").mkdir()
    with tmpfs(folder / "m"):
        fill(folder / "m", "letter")
        place = to_trash(folder)
        try:
            with pytest.raises(CacheError, match="another file system"):
                remove(place)
            assert (place / "m" / "letter").exists()
        finally:
            place.rename(folder)
