"""Mounts, for tests that root runs."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


@contextmanager
def _mounted(point: Path, *words: str) -> Iterator[Path]:
    subprocess.run(["mount", *words, str(point)], check=True, timeout=20)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True, timeout=20)


def bind(source: Path, point: Path) -> AbstractContextManager[Path]:
    """Mount a folder in another place."""
    return _mounted(point, "--bind", str(source))


def tmpfs(point: Path) -> AbstractContextManager[Path]:
    """Mount an empty file system."""
    return _mounted(point, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
