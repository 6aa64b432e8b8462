"""What is to be written, added up for each file system and held against its free room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ttstack.host.filesystems import Filesystem, filesystem_of
from ttstack.host.process import PROC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_GB = 1_000_000_000

MARGIN = 0.1
"""Of all that is still to be written: what estimates are off by, and who else writes to that disk."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that will be written below ``path``."""

    path: Path
    use: Literal["own", "others", "beside"]  # beside: kernel caches, logs and layers of containers
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a reservation that is on one file system. Bytes, and files (inodes)."""

    id: str
    kind: str
    mount: str
    paths: tuple[Path, ...]
    needed: int  # by this build
    others: int  # by builds that go on, beside what they have written
    margin: int
    free: int
    files_needed: int  # by all of them
    files_free: int | None  # None: without a limit
    read_only: bool

    @property
    def total(self) -> int:
        """Give the bytes that must be free."""
        return self.needed + self.others + self.margin

    @property
    def short(self) -> str:
        """Say what is lacking; "" when nothing is."""
        if self.read_only:
            return f"{self.mount} is mounted read-only"
        if self.total > self.free:
            others = f", {gigabytes(self.others)} for other builds" if self.others else ""
            return (
                f"{self.mount} has {gigabytes(self.free)} free, and {gigabytes(self.total)} are needed "
                f"({gigabytes(self.needed)} for this build{others}, {gigabytes(self.margin)} as a margin)"
            )
        if self.files_free is not None and self.files_needed > self.files_free:
            return f"{self.mount} has {self.files_free} inodes free, and {self.files_needed} are needed"
        return ""


def share_out(items: Sequence[Item]) -> tuple[Share, ...]:
    """Add up items by file system. Raises HostError when it cannot be learned on which one something is.

    The free room is asked for last: what others write between a look at their folders and this is then counted twice,
    and not once too little.
    """
    places = {item.path: filesystem_of(item.path, PROC) for item in items}
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(places[item.path].id, []).append(item)
    return tuple(_share([places[item.path] for item in group], group) for group in groups.values())


def _share(seen: Sequence[Filesystem], items: Sequence[Item]) -> Share:
    own, others, beside = (sum(i.bytes for i in items if i.use == use) for use in ("own", "others", "beside"))
    files = sum(item.files for item in items)
    limits = [place.files_free for place in seen if place.files_free is not None]
    return Share(
        id=seen[0].id,
        kind=seen[0].kind,
        mount=seen[0].mount,
        paths=tuple(dict.fromkeys(item.path for item in items)),
        needed=own,
        others=others,
        margin=beside + int((own + others) * MARGIN),
        free=min(place.free for place in seen),  # a folder may have a quota
        files_needed=files + int(files * MARGIN),
        files_free=min(limits) if limits else None,
        read_only=any(place.read_only for place in seen),
    )


def gigabytes(size: int) -> str:
    """Write a number of bytes for people, in GB of 1e9."""
    return f"{size / _GB:.3f} GB" if size < _GB else f"{size / _GB:.1f} GB"
