"""Whether two paths lead to one folder, or one into the other, whatever links and mounts are in between.

A folder goes by three names: its path without links, its device and inode (a bind mount has those of its source), and
its place in the file system that it lies on (so that a bind mount of it, seen from above its source, is known too).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ttstack.host.mountinfo import MountPoint

Name = tuple[str, str] | tuple[str, str, str] | tuple[int, int]

_NO_NAMES = frozenset({"", ".", ".."})
_DEEP = 100  # folders; a path that has more is followed from its top, in one go


class _Named(NamedTuple):
    """What a folder is called."""

    own: frozenset[Name]
    chain: frozenset[Name]  # and all folders that it lies in
    place: tuple[str, str] | None  # the file system's device, and the path from its own top


class Ground:
    """The names of folders, as they are now; each path is looked at once."""

    def __init__(self, mounts: Sequence[MountPoint]) -> None:
        self._mounts = {mount.point: mount for mount in mounts}  # of two at one point the later one lies on top
        self._reals: dict[str, str] = {}
        self._nodes: dict[str, tuple[int, int]] = {}
        self._known: dict[str, _Named] = {}

    def own(self, path: Path | str) -> frozenset[Name]:
        """Give the names of a folder. One that is not there has those that it would have. Raises OSError."""
        return self._named(self._real_of(os.fspath(path))).own

    def chain(self, path: Path | str) -> frozenset[Name]:
        """Give the names of a folder and of all folders that it lies in. Raises OSError."""
        return self._named(self._real_of(os.fspath(path))).chain

    def within(self, path: Path | str, folder: Path | str) -> bool:
        """Whether a path leads to a folder or to something in it. Raises OSError."""
        return not self.own(folder).isdisjoint(self.chain(path))

    def _real_of(self, path: str) -> str:
        known = self._reals.get(path)
        if known is None:
            known = self._reals[path] = self._beside(path) or _real(path)
        return known

    def _beside(self, path: str) -> str:
        """Follow the links to a folder's parent once for all that lie in it; "" where that does not do."""
        above, _, name = path.rpartition("/")
        if not above or name in _NO_NAMES or path.count("/") > _DEEP:
            return ""
        try:
            seen = os.lstat(path)
        except OSError:
            return ""
        if stat.S_ISLNK(seen.st_mode):
            return ""
        real = f"{self._real_of(above).rstrip('/')}/{name}"
        self._nodes[real] = seen.st_dev, seen.st_ino
        return real

    def _named(self, real: str) -> _Named:
        known = self._known.get(real)
        if known is not None:
            return known
        way = [real]
        while way[-1] != "/" and _above(way[-1]) not in self._known:
            way.append(_above(way[-1]))
        for each in reversed(way):
            self._known[each] = self._name(each)
        return self._known[real]

    def _name(self, real: str) -> _Named:
        """Name a folder; the one that it lies in is named already."""
        above = None if real == "/" else self._known[_above(real)]
        mount = self._mounts.get(real)
        place = None
        if mount is not None:
            place = mount.device, mount.root.rstrip("/") or "/"
        elif above is not None and above.place is not None:
            place = above.place[0], f"{above.place[1].rstrip('/')}/{real.rpartition('/')[2]}"
        names: set[Name] = {("path", real)}
        if place is not None:
            names.add(("place", *place))
        with suppress(FileNotFoundError, NotADirectoryError):  # its other names are enough
            names.add(self._nodes.get(real) or _node(real))
        own = frozenset(names)
        if above is not None:
            names |= above.chain
        if mount is not None and place is not None:
            names |= _around(place)
        return _Named(own, frozenset(names), place)


def _around(place: tuple[str, str]) -> set[Name]:
    """Give the folders of a file system that a part of it, which is mounted somewhere, lies in."""
    device, folder = place
    found: set[Name] = set()
    while folder != "/":
        folder = _above(folder)
        found.add(("place", device, folder))
    return found


def _above(folder: str) -> str:
    return folder.rpartition("/")[0] or "/"


def _node(path: str) -> tuple[int, int]:
    seen = os.stat(path)  # noqa: PTH116 - called for many folders, and text is faster
    return seen.st_dev, seen.st_ino


def _real(path: str) -> str:
    """Follow links. Raises OSError for a loop of links and for what may not be looked into."""
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)
