"""Whether two paths lead to one folder, or one into the other, whatever links and mounts are in between.

A folder goes by three names: its path without links, its device and inode (a bind mount has those of its source), and
its place in the file system that it lies on (so that a bind mount of it, seen from above its source, is known too).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ttstack.host.mountinfo import place_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ttstack.host.mountinfo import MountPoint

Name = tuple[str, str] | tuple[str, str, str] | tuple[int, int]


class Ground:
    """The names of folders, as they are now; each path is looked at once."""

    def __init__(self, mounts: Sequence[MountPoint]) -> None:
        self._mounts = mounts
        self._reals: dict[str, str] = {}
        self._own: dict[str, frozenset[Name]] = {}
        self._chains: dict[str, frozenset[Name]] = {}

    def own(self, path: Path | str) -> frozenset[Name]:
        """Give the names of a folder. One that is not there has those that it would have. Raises OSError."""
        return self._own_of(self._real_of(path))

    def chain(self, path: Path | str) -> frozenset[Name]:
        """Give the names of a folder and of all folders that it lies in. Raises OSError."""
        return self._chain_of(self._real_of(path))

    def within(self, path: Path | str, folder: Path | str) -> bool:
        """Whether a path leads to a folder or to something in it. Raises OSError."""
        return not self.own(folder).isdisjoint(self.chain(path))

    def _real_of(self, path: Path | str) -> str:
        text = os.fspath(path)
        known = self._reals.get(text)
        if known is None:
            known = self._reals[text] = _real(text)
        return known

    def _own_of(self, real: str) -> frozenset[Name]:
        known = self._own.get(real)
        if known is None:
            names: set[Name] = {("path", real)}
            place = place_of(real, self._mounts)
            if place is not None:
                names.add(("place", *place))
            with suppress(FileNotFoundError, NotADirectoryError):  # its other names are enough
                seen = os.stat(real)  # noqa: PTH116 - called for every folder, and text is faster
                names.add((seen.st_dev, seen.st_ino))
            known = self._own[real] = frozenset(names)
        return known

    def _chain_of(self, real: str) -> frozenset[Name]:
        known = self._chains.get(real)
        if known is None:
            parent = os.path.dirname(real)  # noqa: PTH120 - as above
            names = set(self._own_of(real))
            if parent != real:
                names |= self._chain_of(parent)
            place = place_of(real, self._mounts)
            while place is not None and place[1] != "/":
                place = (place[0], os.path.dirname(place[1]))  # noqa: PTH120 - as above
                names.add(("place", *place))
            known = self._chains[real] = frozenset(names)
        return known


def _real(path: str) -> str:
    """Follow links. Raises OSError for a loop of links and for what may not be looked into."""
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)
