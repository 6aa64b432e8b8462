"""What makes a checkpoint another one, and what does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ttstack.cache.checkpoint import signature
from ttstack.cache.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def make(folder: Path) -> Path:
    (folder / "parts").mkdir(parents=True)
    for name in ("config.json", "parts/model-1.safetensors", "parts/model-2.safetensors"):
        (folder / name).write_text(name)
        os.utime(folder / name, ns=(1, 10**18 + 5))
    return folder


def test_a_copy_with_its_times_signs_alike(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    assert signature(first) == signature(second)
    assert len(signature(first)) == 64


def grow(folder: Path) -> None:
    (folder / "config.json").write_text("longer than it was")
    os.utime(folder / "config.json", ns=(1, 10**18 + 5))


CHANGES: dict[str, Callable[[Path], object]] = {
    "another size": grow,
    "another time, by a nanosecond": lambda folder: os.utime(folder / "config.json", ns=(1, 10**18 + 6)),
    "another name": lambda folder: (folder / "config.json").rename(folder / "config.jso"),
    "another folder": lambda folder: (folder / "parts").rename(folder / "part"),
    "one less": lambda folder: (folder / "parts" / "model-1.safetensors").unlink(),
    "one more": lambda folder: (folder / "more").touch(),
    "a link to nothing": lambda folder: (folder / "more").symlink_to("nothing"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_shows(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder = make(tmp_path / "a")
    before = signature(folder)
    change(folder)
    assert signature(folder) != before


def test_what_others_keep_beside_it_does_not_count(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    before = signature(folder)
    (folder / ".cache").mkdir()
    (folder / ".cache" / "lock").touch()
    (folder / ".gitattributes").touch()
    os.utime(folder / "config.json", ns=(77, 10**18 + 5))  # that it was read
    assert signature(folder) == before


def test_links_are_followed_and_not_for_ever(tmp_path: Path) -> None:
    real = make(tmp_path / "a")
    (tmp_path / "snapshot").mkdir()
    for name in ("config.json", "parts"):
        (tmp_path / "snapshot" / name).symlink_to(real / name)
    assert signature(tmp_path / "snapshot") == signature(real)
    grow(real)
    assert signature(tmp_path / "snapshot") == signature(real)
    before = signature(real)
    (real / "parts" / "back").symlink_to(real)
    assert signature(real) == before


def test_a_checkpoint_that_cannot_be_read_has_no_signature(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="cannot read the checkpoint"):
        signature(tmp_path / "nothing")
