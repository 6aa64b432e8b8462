"""Which folders of this host containers mount, as docker and podman tell, whether they run or are about to."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttstack.host.containers import DEADLINE_S, describe, run_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ttstack.host.containers import Runner

# All but those that are over. Docker lists these alone, and knows no others; podman has some of its own.
_STATES = {
    "docker": ("created", "running", "paused", "restarting", "removing"),
    "podman": ("configured", "created", "initialized", "running", "paused", "stopping", "removing", "unknown"),
}


@dataclass(frozen=True, slots=True)
class Mounting:
    """A container and what it mounts."""

    who: str  # for people: its name, its engine and its short id
    sources: tuple[str, ...]  # absolute paths of the host
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mountings:
    """What the engines tell. Without troubles no other container mounts anything."""

    found: tuple[Mounting, ...] = ()
    absent: tuple[str, ...] = ()  # one sentence for each engine that is not here
    troubles: tuple[str, ...] = ()  # one sentence for each question that was not answered


def look(
    *, run: Runner = run_command, environ: Mapping[str, str] = os.environ, socket: Path | None = None
) -> Mountings:
    """Ask every engine of this host what its containers mount. Raises nothing."""
    told = describe(_STATES, run=run, environ=environ, socket=socket)
    troubles = list(told.troubles)
    named: dict[tuple[str, ...], set[str]] = {}
    for command, entry in told.entries:
        named.setdefault(command, set()).update(_volumes(entry))
    devices: dict[tuple[tuple[str, ...], str], str] = {}
    for command, names in named.items():
        found, trouble = _devices(command, sorted(names), run)
        devices |= {(command, name): device for name, device in found.items()}
        troubles += [trouble] if trouble else []
    return Mountings(
        tuple(_mounting(command, entry, devices) for command, entry in told.entries), told.absent, tuple(troubles)
    )


def _mounting(
    command: tuple[str, ...], entry: dict[str, Any], devices: Mapping[tuple[tuple[str, ...], str], str]
) -> Mounting:
    name = str(entry.get("Name") or "").removeprefix("/")
    short = str(entry["Id"])[:12]
    labels = (entry.get("Config") or {}).get("Labels") or {}
    sources = [*_sources(entry), *(devices.get((command, volume), "") for volume in _volumes(entry))]
    return Mounting(
        f"container {name or short} ({command[0]} {short})",
        tuple(dict.fromkeys(source for source in sources if source.startswith("/"))),
        {str(key): str(value) for key, value in labels.items()},
    )


def _sources(entry: dict[str, Any]) -> Iterator[str]:
    """Give what is mounted, as it came about and as it was asked for: one that was only made may tell only that."""
    for mount in entry.get("Mounts") or ():
        yield str(mount.get("Source") or "")
    config: dict[str, Any] = entry.get("HostConfig") or {}
    for bind in config.get("Binds") or ():
        yield str(bind).partition(":")[0]
    for mount in config.get("Mounts") or ():
        yield str(mount.get("Source") or "")


def _volumes(entry: dict[str, Any]) -> set[str]:
    mounts = entry.get("Mounts") or ()
    return {str(mount["Name"]) for mount in mounts if mount.get("Type") == "volume" and mount.get("Name")}


def _devices(command: Sequence[str], volumes: Sequence[str], run: Runner) -> tuple[dict[str, str], str]:
    """Say which folders volumes stand for: one of the local driver may be a bind mount (``--opt o=bind``)."""
    if not volumes:
        return {}, ""
    engine = command[0]
    try:
        answer = run([*command, "volume", "inspect", *volumes], DEADLINE_S)
    except TimeoutError:
        return {}, f"{engine} did not answer within {DEADLINE_S:g} s"
    except OSError as error:
        return {}, f"{engine} cannot be run: {error.strerror}"
    try:
        entries = json.loads(answer.out or "[]")
        found = {str(entry["Name"]): str((entry.get("Options") or {}).get("device") or "") for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError):
        found = {}
    missing = [name for name in volumes if name not in found]
    # With an error the engine still tells about the others; a volume that is gone is mounted by nobody any more.
    if missing and (answer.code == 0 or "no such volume" not in answer.err.lower()):
        return found, f"{engine} does not tell what its volume {missing[0]} is"
    return found, ""
