"""Room on disks, and what takes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def free_bytes(path: Path) -> int | None:
    """Bytes that a user may still write on the disk of ``path``, or of the first parent that is there.

    f_bavail, which leaves out what is kept for root (statvfs(3)); None when it cannot be learned.
    """
    for place in (path, *path.parents):
        try:
            seen = os.statvfs(place)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return seen.f_bavail * seen.f_frsize
    return None


def tree_bytes(path: Path) -> int:
    """Bytes of all files below a folder, by their lengths; what goes away meanwhile or cannot be seen is left out."""
    total = 0
    folders = [str(path)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_size
                    except OSError:
                        continue
        except OSError:
            continue
    return total
