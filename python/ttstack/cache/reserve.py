"""Whether a cache that is to be built will fit, beside all else that is being built.

Room is counted by file system, not by path: two folders of one disk have one room. Nothing is set aside on the disk;
what keeps two builds apart is that each sees the other's marker, and what that one still has to write. So a reservation
is made under the lock under which its marker is written (``ttstack.cache.roots.reserving``, then the registry's).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ttstack.arm.key import cache_key
from ttstack.cache import lock
from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.manifest import is_ours
from ttstack.cache.room import Item, Share, share_out
from ttstack.cache.survey import survey
from ttstack.cache.tree import JIT
from ttstack.host.errors import HostError
from ttstack.host.filesystems import Written, filesystem_of, written_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.arm.types import Asked
    from ttstack.cache.registry import Registry
    from ttstack.render.launch import Launch

_GB = 1_000_000_000
_MIB = 1 << 20

Basis = Literal["measured", "similar", "catalogue"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an engine writes beside its tensors, and how many files. Rules of ours, not measurements."""

    files: int  # of a tensor cache that was never measured
    jit_bytes: int
    jit_files: int
    container_bytes: int  # in the folder of docker or podman: the log and the container's own layer
    container_files: int


ENGINE = Allowance(
    files=5_000,
    # The kernels of 32 workers took some 100 GB (tt-inference-server#1682).
    jit_bytes=3 * _GB,
    jit_files=20_000,
    container_bytes=4 * 64 * _MIB + 1024 * _MIB,  # --log-opt max-size=64m, max-file=4
    container_files=1_000,
)
SIMULATED = Allowance(files=100, jit_bytes=_MIB, jit_files=50, container_bytes=8 * _MIB, container_files=100)
"""The simulated engine's files are few and small."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A build that room is wanted for."""

    arm: str
    key: str
    folder: Path  # of the tensor cache
    jit: Path  # of the kernel cache
    container_root: Path | None  # None for a process
    expected: int  # bytes of the whole tensor cache
    files: int  # of the whole tensor cache
    basis: Basis  # where ``expected`` is from
    allowance: Allowance


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another build in flight. ``left``: what it still has to write."""

    path: Path
    run: str
    arm: str
    kernels: Path
    expected: int
    left: int
    files: int  # written so far


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a build needs and what there is, for each file system that it writes to.

    ``unread``: what may be being built and could not be looked at, each with the way out.
    """

    wanted: Wanted
    present: int  # bytes of the tensor cache that are there
    shares: tuple[Share, ...]
    siblings: tuple[Sibling, ...]
    unread: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether it may begin."""
        return not self.unread and not any(share.short for share in self.shares)


def wanted(asked: Asked, launch: Launch, registry: Registry, *, container_root: Path | None = None) -> Wanted:
    """Say what a start takes that builds its cache.

    Its size is that of the same cache when it was built before, else of one of the same model and mesh, else the
    catalogue's ``cache_gb``. ``container_root``: see ``ttstack.host.container_root``.
    """
    inputs = cache_key(asked).inputs
    measured = registry.expected_bytes(inputs)
    same = registry.history.get(launch.cache_key)
    allowance = SIMULATED if asked.arm.engine.kind == "sim" else ENGINE
    return Wanted(
        arm=asked.arm.name,
        key=launch.cache_key,
        folder=Path(launch.cache_dir),
        jit=Path(launch.jit_dir),
        container_root=container_root,
        expected=int(asked.model.cache_gb * _GB) if measured is None else measured,
        files=same.files if same else allowance.files,
        basis="catalogue" if measured is None else "measured" if same else "similar",
        allowance=allowance,
    )


def reserve(root: Path, want: Wanted, *, roots: Sequence[Path] = ()) -> Reservation:
    """Count the room for a build under ``root``, and write nothing.

    ``roots``: others of this host (``ttstack.cache.roots.known_roots``), whose builds count where they are on the same
    disk. Raises HostError when it cannot be learned which file system something is on.
    """
    siblings: list[Sibling] = []
    unread: list[str] = []
    places = dict.fromkeys(Path(os.path.realpath(each)) for each in (root, *roots))
    for at, place in enumerate(places):
        try:
            builds, unreadable = _builds(place, want.folder)
        except CacheError as error:
            if not at or _may_share(place, want.folder):
                unread.append(f"what is built under {place} cannot be told: {error.message}")
            continue
        unread += unreadable
        siblings += builds
    present = written_below(want.folder, is_ours)
    left = Written(max(0, want.expected - present.bytes), max(0, want.files - present.files))
    beside = want.allowance
    items = [Item(want.folder, "own", left.bytes, left.files), _kernels(want.jit, beside)]
    for build in siblings:
        items.append(Item(build.path, "others", build.left, max(0, beside.files - build.files)))
        items.append(_kernels(build.kernels, beside))
    if want.container_root is not None:
        items.append(Item(want.container_root, "beside", beside.container_bytes, beside.container_files))
    return Reservation(want, present.bytes, share_out(items), tuple(siblings), tuple(unread))


def check(reservation: Reservation) -> None:
    """Raise CacheRefusedError when a build may not begin, with all that is lacking and the way out."""
    want = reservation.wanted
    lacking = [share.short for share in reservation.shares if share.short]
    if lacking:
        only_reading = any(share.read_only for share in reservation.shares)
        raise CacheRefusedError(
            f"the tensor cache of {want.arm} cannot be built: {'; '.join(lacking)}",
            hint=f"what could go: ttx reserve {want.arm}; or set TTX_CACHE to a larger disk",
            reason="cache_unwritable" if only_reading else "no_space",
        )
    if reservation.unread:
        raise CacheRefusedError(
            f"it cannot be told whether the tensor cache of {want.arm} fits: {'; '.join(reservation.unread)}",
            hint="see: ttx cache ls; run as a user who may read it",
            reason="no_space",
        )


def _builds(root: Path, own: Path) -> tuple[list[Sibling], list[str]]:
    """Find what others build under a root, and what somebody uses there that cannot be read. Raises CacheError.

    What an abandoned build left takes nothing more.
    """
    found: list[Sibling] = []
    unread: list[str] = []
    for directory in survey(root):
        marker = directory.marker
        if os.path.realpath(directory.path) == os.path.realpath(own):
            continue
        if directory.standing == "unreadable" and _in_use(root, directory.key):
            unread.append(f"{directory.path} is in use and cannot be read: {directory.text}")
        elif directory.standing == "building" and marker is not None:
            written = written_below(directory.path, is_ours)
            found.append(
                Sibling(
                    path=directory.path,
                    run=marker.builder.run,
                    arm=marker.builder.arm,
                    kernels=root / JIT / f"{marker.builder.arm}-{marker.inputs.get('format', '')}",
                    expected=marker.expected,
                    left=max(0, marker.expected - written.bytes),
                    files=written.files,
                )
            )
    return found, unread


def _kernels(folder: Path, allowance: Allowance) -> Item:
    """Count what a kernel cache may still take: it grows with each shape that is compiled, so its size is not known."""
    written = written_below(folder)
    return Item(
        folder,
        "beside",
        max(0, allowance.jit_bytes - written.bytes),
        max(0, allowance.jit_files - written.files),
    )


def _in_use(root: Path, key: str) -> bool:
    try:
        return lock.state(root, key) != "free"
    except CacheError:
        return True


def _may_share(root: Path, folder: Path) -> bool:
    try:
        return filesystem_of(root).id == filesystem_of(folder).id
    except HostError:
        return True
