"""Caches as the verbs show them: what a root holds, who uses it, and each as a row, as JSON and as a page."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ttstack.cache import lock
from ttstack.cache.errors import CacheError, RegistryError
from ttstack.cache.marker import is_key
from ttstack.cache.registry_file import check
from ttstack.cache.sizes import Sizes, measure
from ttstack.cache.survey import survey
from ttstack.cache.tree import listed
from ttstack.cache.types import LOCKS, Directory, Use
from ttstack.cache.uses import ask_engines, uses
from ttstack.cache.why import flat
from ttstack.cli.cache_sources import sources_of
from ttstack.cli.hosts import all_places
from ttstack.cli.human import ago, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ttstack.cli.command import Context
    from ttstack.host.types import Places

COLUMNS = ("CACHE", "STATE", "SIZE", "ARM", "USED", "WHAT")
_NOW = {"container", "slot", "build", "lock"}  # the others name it, and may start any time
_SHORT = ("model", "revision", "mesh", "dtype", "optimizations", "format")


@dataclass(frozen=True, slots=True)
class Seen:
    """One directory, and who uses it."""

    places: Places
    directory: Directory
    used_by: tuple[Use, ...] = ()

    @property
    def name(self) -> str:
        """Its path from the root, which is the key of a tensor cache."""
        return str(self.directory.path).removeprefix(f"{self.places.cache}".rstrip("/")).lstrip("/")


@dataclass(frozen=True, slots=True)
class RootView:
    """One root. ``unread``: what could not be asked for uses; ``trouble``: why its registry cannot be believed."""

    places: Places
    seen: tuple[Seen, ...]
    unread: tuple[str, ...] = ()
    trouble: str = ""
    sizes: Sizes = field(default_factory=lambda: Sizes({}, 0))


def roots(context: Context, *, sizes: bool = False, ask: bool = True) -> Iterator[RootView]:
    """Look at the caches of the real host, and of the simulated one when there is one. Raises TtxError."""
    for places in all_places(os.environ):
        sources = sources_of(context, places)
        if ask and listed(places.cache):
            sources = replace(sources, asked=ask_engines(sources))
        directories = survey(places.cache)
        locks = _lock_files(places.cache) if directories else ()
        used = uses(replace(sources, directories=directories)) if sources.asked is not None else None
        seen = []
        for directory in directories:
            found = used.of(directory.path) if used is not None else ()
            held = _locks(places.cache, directory, found) if locks is None or directory.key in locks else ()
            seen.append(Seen(places, directory, (*found, *held)))
        yield RootView(
            places,
            tuple(seen),
            used.unread if used is not None else (),
            _trouble(places.cache) if directories else "",
            measure(directory.path for directory in directories) if sizes else Sizes({}, 0),
        )


def _lock_files(root: Path) -> frozenset[str] | None:
    """Name the locks that were ever made; None when they cannot be listed, and each has to be looked for."""
    try:
        return frozenset(os.listdir(root / LOCKS))  # noqa: PTH208 - the names alone
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return None


def _locks(root: Path, directory: Directory, found: Sequence[Use]) -> Iterator[Use]:
    """Look for somebody who has the key's lock and is in no other source."""
    if not is_key(directory.key) or any(use.source in {"slot", "build"} for use in found):
        return
    try:
        state = lock.state(root, directory.key)
    except CacheError as error:
        yield Use("lock", directory.path, f"it cannot be told: {error.message}")
        return
    if state != "free":
        yield Use("lock", directory.path, f"somebody who has its lock, {'alone' if state == 'exclusive' else 'shared'}")


def _trouble(root: Path) -> str:
    try:
        check(root)
    except (CacheError, RegistryError) as error:
        return str(error)
    return ""


def row(seen: Seen, sizes: Sizes) -> tuple[str, ...]:
    """Describe a directory in a line of the table."""
    directory, marker = seen.directory, seen.directory.marker
    return (
        seen.name,
        directory.standing,
        _size(directory, sizes),
        "-" if marker is None else marker.builder.arm,
        "-" if directory.used is None else ago(time.time() - directory.used),
        "; ".join(_about(seen)) or "-",
    )


def _about(seen: Seen) -> Iterator[str]:
    """Say first what matters most, as the line may be cut."""
    directory, marker = seen.directory, seen.directory.marker
    used = [use for use in seen.used_by if use.source in _NOW]
    if any(use.source == "slot" for use in used):  # who builds it holds its cards
        used = [use for use in used if use.source != "build" or use.path != directory.path]
    now = dict.fromkeys(use.who for use in used)
    if now:
        yield f"in use: {', '.join(now)}"
    if directory.text and directory.standing != "building":
        yield directory.text
    if directory.standing == "unmarked":
        yield "no marker of ttx (see: ttx cache adopt --help)"
    if seen.places.simulated:
        yield "simulated"
    if marker is not None:
        yield "compiled kernels" if marker.kind == "jit" else summary(marker.inputs)


def _size(directory: Directory, sizes: Sizes) -> str:
    on_disk = sizes.each.get(directory.path)
    if on_disk is not None:
        shared = f" + {size(on_disk.shared)} shared" if on_disk.shared else ""
        return f"{size(on_disk.own)}{shared}{', not all could be read' if on_disk.unread else ''}"
    marker = directory.marker
    if marker is None or not (marker.bytes or marker.expected):
        return "-"
    return size(marker.bytes) if marker.state != "building" else f"of {size(marker.expected)}"


def summary(inputs: Any) -> str:  # noqa: ANN401 - a marker's, which may hold anything
    """Tell what went into a key, in a line."""
    words = [str(inputs[name]) for name in _SHORT if inputs.get(name) not in {None, "", "auto", "default"}]
    rest = {name: value for name, value in flat(inputs).items() if name not in {*_SHORT, "version", "env"}}
    return " ".join([*words, *(f"{name.removeprefix('env.')}={value}" for name, value in sorted(rest.items()))])


def entry(seen: Seen, sizes: Sizes) -> dict[str, Any]:
    """Describe a directory for programs."""
    directory, marker = seen.directory, seen.directory.marker
    on_disk = sizes.each.get(directory.path)
    found: dict[str, Any] = {
        "name": seen.name,
        "path": str(directory.path),
        "simulated": seen.places.simulated,
        "standing": directory.standing,
        "text": directory.text,
        "used": None if directory.used is None else utc(directory.used),
        "used_by": [{"source": use.source, "who": use.who} for use in seen.used_by],
        "marker": None,
        "on_disk": None,
    }
    if marker is not None:
        from ttstack.cache.marker import to_table  # noqa: PLC0415 - for JSON alone

        found["marker"] = to_table(marker)
    if on_disk is not None:
        found["on_disk"] = {"own": on_disk.own, "shared": on_disk.shared, "unread": on_disk.unread}
    return found


def utc(seconds: float) -> str:
    """Write a time."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def page(seen: Seen, sizes: Sizes) -> Iterator[str]:
    """Describe a directory in lines."""
    directory, marker = seen.directory, seen.directory.marker
    rows: list[tuple[str, object]] = [("path", directory.path), ("state", directory.standing)]
    on_disk = sizes.each.get(directory.path)
    if directory.text:
        rows.append(("why", directory.text))
    if directory.used is not None:
        rows.append(("used", f"{utc(directory.used)}, {ago(time.time() - directory.used)}"))
    if on_disk is not None:
        rows.append(("on the disk", f"{size(on_disk.own)} of its own, {size(on_disk.shared)} shared"))
    if marker is not None:
        who = marker.builder
        rows += [("kind", marker.kind), ("arm", who.arm), ("made", f"{marker.made} by run {who.run}, user {who.user}")]
        rows += [("completed", marker.completed)] if marker.completed else []
        if marker.bytes:
            rows.append(("files", f"{marker.files} with {marker.bytes} bytes ({size(marker.bytes)})"))
        rows += [("expected", size(marker.expected))] if marker.state == "building" and marker.expected else []
        rows += [("seeded from", marker.seeded_from)] if marker.seeded_from else []
        rows += [("checkpoint", marker.checkpoint)] if marker.checkpoint else []
        rows += [(f"input {name}", value) for name, value in flat(marker.inputs).items()]
    rows += [(f"{'used' if use.source in _NOW else 'named'} by", use.who) for use in seen.used_by]
    width = max(len(name) for name, _ in rows)
    return (f"{name:<{width}}  {value}" for name, value in rows)
