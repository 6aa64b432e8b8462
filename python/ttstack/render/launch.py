"""Launch: one start of one engine, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.arm.types import Runtime


CACHE_LABEL = "ttstack.cache"
CACHE_TARGET = "/cache/tensors"
"""Where a container's engine sees its tensor cache."""

JIT_TARGET = "/cache/jit"
"""Where a container's engine sees its kernel cache."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device node: where it is on the host and what the engine sees."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Port:
    """A published port."""

    host: str
    outside: int
    inside: int


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that a runtime needs to start the engine, in the order of docs/reference/launch.md."""

    name: str  # of the container or the run's process: ttx-<arm>
    runtime: Runtime
    image: str  # "" for the process runtime
    argv: tuple[str, ...]  # the engine's command, program first
    env: Mapping[str, str]
    secrets: tuple[str, ...]  # environment passed by name
    devices: tuple[Device, ...]
    mounts: tuple[Mount, ...]
    ports: tuple[Port, ...]
    labels: Mapping[str, str]
    stop_grace_s: int
    cache_key: str  # 16 hex digits
    cache_dir: str  # on the host
    cache_path: str  # as the engine sees it: TT_CACHE_PATH
    jit_dir: str  # the kernel cache, on the host
