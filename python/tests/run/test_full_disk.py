"""A real disk that a real run fills: stopped, told, broken, and built anew when there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ttstack.cache.survey import survey
from ttstack.cache.types import TRASH
from ttstack.cache.verify import verify
from ttstack.run.watch import Limits
from ttstack.sim.model import make_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import World

MB = 1_000_000
TOOLS = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def tool(*words: str) -> None:
    program = shutil.which(words[0], path=TOOLS)
    if program is None or os.geteuid() != 0:
        pytest.skip("needs root, mkfs.ext4 and mount")
    done = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        pytest.skip(f"{words[0]} does not work here: {done.stderr.strip()[-300:]}")


@pytest.fixture
def small(world: World, tmp_path: Path) -> Iterator[World]:
    """A world whose caches lie on an ext4 of 16 MB, with a model whose cache takes 12 and is said to take 1."""
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(16 * MB)
    tool("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image))
    tool("mount", "-o", "loop", str(image), str(disk))
    try:
        world.places = replace(world.places, cache=disk)
        shutil.rmtree(world.base / "model")
        make_model(world.base / "model", max_len=2048, tensor_bytes=MB)
        (disk / "filler").write_bytes(b"x" * (6 * MB))
        yield world
    finally:
        world.end_all()
        subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=60)


@pytest.mark.host
@pytest.mark.parametrize(
    ("floor", "boot_ms", "reason"),
    [(0, 40, "no_space"), (3 * MB, 3000, "low_disk")],
    ids=["the engine meets the end of the disk", "the supervisor is faster"],
)
def test_a_build_that_fills_the_disk_is_broken_and_the_next_one_takes_its_place(
    small: World, floor: int, boot_ms: int, reason: str
) -> None:
    limits = Limits(disk_floor=floor, disk_ahead_s=0, memory_start=0, memory_floor=0)
    result = small.execute(small.arm(boot_ms=boot_ms, stop_grace_s=1), limits=limits)
    assert (result.exit_code, result.error.reason) == (1, reason), result.error  # type: ignore[union-attr]
    (entry,) = (each for each in survey(small.places.cache) if each.marker and each.marker.kind == "tensors")
    closed = small.record(result.run).closed
    assert closed is not None
    assert (entry.standing, entry.text) == ("broken", closed.text)
    assert closed.observed is not None
    assert closed.observed.cache_work is not None
    assert closed.observed.cache_work.bytes_written > 0
    assert small.clean()
    (small.places.cache / "filler").unlink()
    again = small.execute(small.arm(), limits=replace(limits, disk_floor=0))
    assert again.exit_code == 0, again.error
    (entry,) = (each for each in survey(small.places.cache) if each.marker and each.marker.kind == "tensors")
    assert (entry.standing, verify(entry.path)) == ("complete", ())
    assert list((small.places.cache / TRASH).iterdir()) == []
