"""Whether a checkpoint is still the one that a cache was made from.

``revision = "local"`` in models.toml says no more than "what lies in that folder", so two checkpoints that follow one
another there would have one key, and ttnn takes a tensor file by its name alone (tt-metal PR#26779).
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def signature(path: Path) -> str:
    """Sign a checkpoint: sha256, hex, over relative name, size and mtime (ns) of each of its files, sorted by name.

    Links are followed, as a Hugging Face snapshot is made of them; one that leads nowhere counts by its name. Names
    that begin with a dot are left out: they are download tools' and version control's own. Nothing is read but the
    folders, as a checkpoint has tens of GB. Raises CacheError when a folder cannot be read.
    """
    digest = hashlib.sha256()
    top = os.fsencode(path)
    for name, size, changed in sorted(_files(top, b"", ())):
        digest.update(b"%d:%s %d %d\n" % (len(name), name, size, changed))
    return digest.hexdigest()


def _files(folder: bytes, inside: bytes, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[bytes, int, int]]:
    try:
        here = os.stat(folder)  # noqa: PTH116 - names need not be text
        if (here.st_dev, here.st_ino) in above:
            return  # a link back to a folder that we are in
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError as error:
        raise CacheError(f"cannot read the checkpoint {os.fsdecode(folder)}: {error.strerror}") from error
    for entry in found:
        if entry.name.startswith(b"."):
            continue
        name = inside + entry.name
        if entry.is_dir():
            yield from _files(entry.path, name + b"/", (*above, (here.st_dev, here.st_ino)))
            continue
        try:
            seen = entry.stat()
        except OSError:
            yield name, -1, 0
        else:
            yield name, seen.st_size, seen.st_mtime_ns
