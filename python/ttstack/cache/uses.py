"""Who uses which directory under a root: units, arms, containers, runs that hold cards, builds.

Each source is asked each time, and one that cannot be read is told, never taken for "nobody".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import arm_names
from ttstack.cache.ground import Ground
from ttstack.cache.marker import is_key
from ttstack.cache.tree import JIT
from ttstack.cache.types import Use
from ttstack.cache.use_runs import build_uses, builds_among, slot_uses
from ttstack.cache.use_units import used_by
from ttstack.errors import TtxError
from ttstack.host import container_mounts, units
from ttstack.host.containers import run_command
from ttstack.host.mountinfo import elsewhere, is_within, mount_points, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ttstack.arm.shelf import Shelf
    from ttstack.cache.ground import Name
    from ttstack.cache.types import Directory
    from ttstack.host.containers import Runner
    from ttstack.host.mountinfo import MountPoint
    from ttstack.host.types import Places


@dataclass(frozen=True, slots=True)
class Sources:
    """Where uses are learned from. The defaults are this host's own."""

    places: Places
    shelves: tuple[Shelf, ...]  # all of whose arms are used
    arms: tuple[tuple[str, Shelf], ...] = ()  # others: name or path, and the shelf that its model and pin are on
    no_arms: str = ""  # why there is no shelf at all, which is not the same as no arms
    run: Runner = run_command
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    socket: Path | None = None  # of docker
    unit_folders: tuple[Path, ...] = units.FOLDERS
    booted: Path = units.BOOTED
    ours: Path | None = None  # a directory whose lock this process has alone: nobody builds it
    directories: Sequence[Directory] | None = None  # the root's, by who looked at them just now
    asked: Callable[[], Told] | None = None  # the engines, by who had something else to do meanwhile: ask_engines()

    @property
    def root(self) -> Path:
        """The folder of caches."""
        return self.places.cache


class Uses:
    """What was found. Without anything ``unread`` nobody else uses a directory of the root."""

    def __init__(self, found: Iterable[Use], unread: Iterable[str], ground: Ground) -> None:
        self.found = tuple(dict.fromkeys(found))
        self._ground = ground
        self._inside: dict[Name, list[Use]] = {}  # by the names of all folders that the use's path lies in
        self._at: dict[Name, list[Use]] = {}  # by the names of the use's own path
        troubles = list(unread)
        for use in self.found:
            try:
                chain, own = ground.chain(use.path), ground.own(use.path)
            except OSError as error:
                troubles.append(f"{use.who} uses {use.path}, which cannot be looked at: {error.strerror}")
                continue
            for name in chain:
                self._inside.setdefault(name, []).append(use)
            for name in own:
                self._at.setdefault(name, []).append(use)
        self.unread = tuple(dict.fromkeys(troubles))

    def of(self, folder: Path) -> tuple[Use, ...]:
        """Give the uses of a directory: of itself, of what is in it, and of folders that it lies in. Raises OSError."""
        found = [use for name in self._ground.own(folder) for use in self._inside.get(name, ())]
        found += [use for name in self._ground.chain(folder) for use in self._at.get(name, ())]
        return tuple(dict.fromkeys(found))


def uses(sources: Sources) -> Uses:
    """Ask every source, now. Raises nothing that a source could raise: that source is then unread."""
    try:
        mounts = mount_points()
    except TtxError as error:
        return Uses((), (error.message,), Ground(()))
    ground = Ground(mounts)
    found: list[Use] = []
    unread: list[str] = []
    containers = sources.asked or ask_engines(sources)
    for ask in LOOKS.values():
        try:
            told, troubles = containers() if ask is _containers else ask(sources, ground, mounts)
        except TtxError as error:
            unread.append(error.message)
        except OSError as error:
            unread.append(f"{error.filename or 'a source of uses'}: {error.strerror}")
        else:
            found += told
            unread += troubles
    return Uses(found, unread, ground)


Told = tuple[list[Use], list[str]]
Look = Callable[[Sources, Ground, "Sequence[MountPoint]"], Told]


def ask_engines(sources: Sources) -> Callable[[], Told]:
    """Ask for containers beside all else, as that waits for other programs.

    What is returned waits for the answer, and raises what was raised.
    """
    answer: list[Told] = []
    raised: list[BaseException] = []

    def go() -> None:
        try:
            answer.append(_containers(sources))
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is asked for
            raised.append(error)

    # No daemon: an interrupted command must not leave an engine's client behind.
    thread = threading.Thread(target=go, name="containers")
    thread.start()

    def wait() -> Told:
        thread.join()
        if raised:
            raise raised[0]
        return answer[0]

    return wait


def _units(sources: Sources, ground: Ground, _mounts: Sequence[MountPoint]) -> Told:
    """Ask for the effective commands of all services."""
    told = units.look(run=sources.run, folders=sources.unit_folders, booted=sources.booted)
    found: list[Use] = []
    unread = list(told.troubles)
    for unit in told.found:
        mine, troubles = used_by(unit, sources.root, ground)
        found += mine
        unread += troubles
    return found, unread


def _arms(sources: Sources, _ground: Ground, _mounts: Sequence[MountPoint]) -> Told:
    """Compute the keys of all arms that could be started."""
    found: list[Use] = []
    unread = [sources.no_arms] if sources.no_arms else []
    named = [(name, shelf) for shelf in sources.shelves for name in arm_names(shelf)]
    for name, shelf in (*named, *sources.arms):
        try:
            asked = load(name, shelf)
        except TtxError as error:
            first = error.message.splitlines()[0]
            unread.append(f"the arm {name} of {shelf.arms} cannot be read: {first}")
            continue
        who = f"arm {asked.arm.name} ({asked.arm.file})"
        found.append(Use("arm", sources.root / cache_key(asked).key, who))
        found.append(Use("arm", sources.root / JIT / f"{asked.arm.name}-{asked.pin.cache_format}", who))
    return found, unread


def _containers(sources: Sources, *_: object) -> Told:
    """Ask docker and podman what their containers mount."""
    told = container_mounts.look(run=sources.run, environ=sources.environ, socket=sources.socket)
    if not told.found:
        return [], list(told.troubles)
    from ttstack.render.launch import CACHE_LABEL  # noqa: PLC0415 - its import takes as long as a hundred caches

    found = [Use("container", Path(source), one.who) for one in told.found for source in one.sources]
    labels = ((one.who, one.labels.get(CACHE_LABEL, "")) for one in told.found)
    found += [Use("container", sources.root / key, who) for who, key in labels if is_key(key)]
    return found, list(told.troubles)


def _mounted(sources: Sources, _ground: Ground, mounts: Sequence[MountPoint]) -> Told:
    """Look for mounts of the root's directories in other mount namespaces, and in this one for what is mounted in them.

    Podman tells a user's own containers only, and there are container engines that nobody asks; root sees the mounts
    of all of them.
    """
    root = os.path.realpath(sources.root)
    place = place_of(root, mounts)
    found = [
        Use("container", Path(mount.point), f"a mount on {mount.point}")
        for mount in mounts
        if is_within(mount.point, root) and mount.point != root
    ]
    if place is None:
        return found, []
    device, top = place
    here = set(mounts)
    for other in elsewhere():
        mount = other.mount
        if mount in here or mount.device != device or not is_within(mount.root, top):
            continue
        path = f"{root}{mount.root.removeprefix(top.rstrip('/'))}" if mount.root != top else root
        if mount.point != path or path != root:  # a service's sandbox mounts writable folders onto themselves
            found.append(Use("container", Path(path), f"pid {other.pid} ({other.command}), which has it mounted"))
    return found, []


def _slots(sources: Sources, _ground: Ground, _mounts: Sequence[MountPoint]) -> Told:
    """Ask the locks of cards."""
    return slot_uses(sources.places)


def _builds(sources: Sources, _ground: Ground, _mounts: Sequence[MountPoint]) -> Told:
    """Ask the markers of directories that are being built."""
    if sources.directories is not None:
        return builds_among(sources.root, sources.directories, sources.ours), []
    return build_uses(sources.root, sources.ours)


LOOKS: dict[str, Look] = {
    "units": _units,
    "arms": _arms,
    "containers": _containers,
    "mounts": _mounted,
    "slots": _slots,
    "builds": _builds,
}
"""Every source, by name."""


def mounted_now(sources: Sources) -> Uses:
    """Ask the kernel alone who has what mounted. Raises HostError and OSError."""
    mounts = mount_points()
    ground = Ground(mounts)
    return Uses(*_mounted(sources, ground, mounts), ground)
