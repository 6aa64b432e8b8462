"""What is known of a cache, as data; docs/reference/cache.md says how it lies on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ttstack.host.types import ProcessId

SCHEMA = 1

MARKER = ".ttx-cache.json"
"""Inside each directory that we made: whose it is. A directory without it is not ours, and never deleted."""

MANIFEST = ".ttx-files.json"
"""Inside each complete cache: its files, as they were when it was completed."""

USED = ".ttx-used"
"""Inside each directory that we made: an empty file, whose mtime is the last use (touched, as that needs no room)."""

REGISTRY = ".ttx-registry.json"
LOCKS = ".ttx-locks"
TRASH = ".ttx-trash"
NEW = ".ttx-new"
"""Under the root. Names that start with a dot are never keys. NEW is a directory until its marker is in it."""

Kind = Literal["tensors", "jit", "stage"]
State = Literal["building", "complete", "broken"]

Standing = Literal["building", "abandoned", "complete", "broken", "unmarked", "trash", "not ours", "unreadable"]
"""What a directory turns out to be when it is looked at.

``abandoned``: its marker says building, and neither its builder nor its lock lives. ``unmarked``: its name is a key and
it has no marker. ``unreadable``: there is a marker and it cannot be believed; it counts as used by somebody.
"""


@dataclass(frozen=True, slots=True)
class Builder:
    """Who builds it. Believed only on the same boot and in the same pid namespace; the kernel's lock is the truth."""

    run: str
    arm: str
    user: str
    process: ProcessId
    boot: str
    pid_namespace: int


@dataclass(frozen=True, slots=True)
class Marker:
    """The content of a MARKER file. ``inputs`` is everything that went into the key (arm/key.py)."""

    key: str
    inputs: Mapping[str, object]
    state: State
    builder: Builder  # who made it, and while it is building who still does
    made: str  # UTC, ISO 8601 to the second
    kind: Kind = "tensors"
    completed: str = ""  # UTC; "" unless complete
    reason: str = ""  # why it is broken
    files: int = 0  # of the manifest
    bytes: int = 0  # of the manifest, lengths added up
    expected: int = 0  # bytes that the build was expected to take in all, for those who reserve beside it
    seeded_from: str = ""  # the key whose files it began with
    checkpoint: str = ""  # signature of the checkpoint's files (cache/checkpoint.py); "" when the model has no path


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a MANIFEST. ``path`` is relative, with ``/``."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Directory:
    """One entry under the root, as it was seen."""

    path: Path
    standing: Standing
    marker: Marker | None
    used: float | None  # seconds since the epoch, of USED; None when there is none
    text: str = ""  # why it is unreadable, broken or abandoned

    @property
    def key(self) -> str:
        """Its name; a key only where the standing says so."""
        return self.path.name


Source = Literal["unit", "arm", "container", "slot", "build", "grace", "lock"]


@dataclass(frozen=True, slots=True)
class Use:
    """Why a directory is protected. ``who`` is for people: a unit's name, an arm's file, a container's name and id."""

    source: Source
    path: Path  # absolute, of the directory or of one above or below it
    who: str
