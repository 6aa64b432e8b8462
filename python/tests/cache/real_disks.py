"""Real file systems in files: made, mounted, taken away again. A test that cannot have one says why it is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest
from seed_kit import files_of

from ttstack.cache.survey import standing_of
from ttstack.cache.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"
MIB = 1 << 20


class Disks:
    """Makes file systems below one folder, and unmounts them when the test is over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()
        if os.geteuid() != 0:
            pytest.skip("only root can mount file systems")

    def make(self, kind: str, size: int, *options: str, name: str = "disk") -> Path:
        """Make a file system of so many bytes and mount it; return where."""
        image, place = self.folder / f"{name}.img", self.folder / name
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(size)
        self._tool(f"mkfs.{kind}", "-q", *options, str(image))
        self.mount("-o", "loop", str(image), str(place))
        return place

    def mount(self, *words: str) -> None:
        """Mount something; the last word is where."""
        self._tool("mount", *words)
        self.stack.callback(self._unmount, words[-1])

    def again(self, *words: str) -> None:
        """Change a mount that is there."""
        self._tool("mount", *words)

    def _tool(self, name: str, *words: str) -> None:
        program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{PROGRAMS}")
        if program is None:
            pytest.skip(f"{name} is not installed")
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            pytest.skip(f"{name} does not work here: {done.stderr.strip()[-300:]}")

    @staticmethod
    def _unmount(place: str) -> None:
        done = subprocess.run(["umount", place], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:  # something has a file of it open: it goes when that does
            subprocess.run(["umount", "--lazy", place], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    made = Disks(tmp_path)
    with made.stack:
        yield made


def fill(place: Path, *, leave: int = 0) -> None:
    """Write until the disk is full, then give so many bytes back."""
    with (place / "filler").open("wb", buffering=0) as file, suppress(OSError):
        for size in (MIB, 65536, 4096, 512):
            with suppress(OSError):
                while file.write(b"f" * size) == size:
                    pass
        os.fsync(file.fileno())
    if leave:
        os.truncate(place / "filler", max(0, (place / "filler").stat().st_size - leave))
        os.sync()


def free_bytes(place: Path) -> int:
    seen = os.statvfs(place)
    return seen.f_bavail * seen.f_frsize


def until_refused(number: int, make: Callable[[int], None]) -> int:
    """Call it until the kernel refuses; return how often it did not."""
    for at in range(70_000):
        try:
            make(at)
        except OSError as error:
            assert error.errno == number  # noqa: PT017 - the loop ends by it
            return at
    raise AssertionError("it was never refused")


def sound(folder: Path, content: dict[str, bytes]) -> None:
    """Check that a cache is complete and what it was."""
    assert standing_of(folder).standing == "complete"
    assert verify(folder) == ()
    assert files_of(folder) == content
