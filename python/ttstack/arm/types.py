"""What was asked, as data: Arm, Pin, Model, and the three of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

Scalar = str | int | float | bool
Value = Scalar | tuple["Value", ...] | Mapping[str, "Value"]
"""A TOML value as an arm may hold it: lists become tuples, tables become read-only mappings."""

EngineKind = Literal["vllm", "asgi", "demo", "sim"]
Runtime = Literal["docker", "podman", "process"]


@dataclass(frozen=True, slots=True)
class Engine:
    """The program that serves, and how it is started and stopped."""

    kind: EngineKind
    runtime: Runtime
    port: int
    host: str  # the address that the port is published on, 127.0.0.1 unless the arm says otherwise
    args: Mapping[str, Value]  # the engine's own flags, without leading dashes
    tt: Mapping[str, Value]  # vLLM's --additional-config, key "tt"
    secrets: tuple[str, ...]  # names of environment variables that are passed by name only
    boot_timeout_s: int
    stop_grace_s: int


@dataclass(frozen=True, slots=True)
class Cards:
    """Which cards. ``ids`` is empty when any ``count`` cards will do."""

    count: int
    ids: tuple[str, ...]  # BDF, serial (16 hex digits) or udev's by-id name (blackhole-<asic id>)
    mesh: str  # MESH_DEVICE, e.g. "P150x2"


@dataclass(frozen=True, slots=True)
class Overlay:
    """A source tree put over the image's own."""

    source: Path  # absolute
    target: str  # relative to the pin's tt-metal home


@dataclass(frozen=True, slots=True)
class Expect:
    """What the engine must look like when it runs."""

    banners: tuple[str, ...]  # plain text, or a regular expression after "re:"
    served_root: str  # "checkpoint" (the model's own path or id) or the literal text
    max_model_len: int | None


@dataclass(frozen=True, slots=True)
class Arm:
    """One exact thing to run. ``digest`` is over its meaning, see ``ttstack.arm.digest``."""

    name: str
    file: Path
    description: str
    pin: str
    model: str
    engine: Engine
    cards: Cards
    env: Mapping[str, str]
    weights_env: Mapping[str, str]  # changes the bytes of the tensor cache: part of the cache key
    overlays: tuple[Overlay, ...]
    expect: Expect


@dataclass(frozen=True, slots=True)
class Model:
    """An entry of models.toml."""

    name: str
    hf: str  # Hugging Face id; "" for a model that has none
    path: str  # absolute folder of the checkpoint on the card host; "" when the engine is given the id
    revision: str
    served_name: str
    cache_gb: float  # what the tensor cache is expected to take, GB (1e9 bytes)
    env: Mapping[str, str]  # environment that the model requires
    weights_env: tuple[str, ...]  # names of variables that change the bytes of its tensor cache
    weights_env_in_name: tuple[str, ...] = ()  # those of them that change bytes only together with the files' names

    @property
    def root(self) -> str:
        """What /v1/models must name as root: the path, else the Hugging Face id."""
        return self.path or self.hf


@dataclass(frozen=True, slots=True)
class Wheel:
    """The exact wheel that an image's engine comes from."""

    name: str
    version: str
    python: str  # tag such as "cp310"
    sha256: str


@dataclass(frozen=True, slots=True)
class Pin:
    """The set of versions that an image is built from."""

    name: str
    file: Path
    description: str
    image: str  # reference, with @sha256:... once it is known; "" for the process runtime
    home: str  # where tt-metal lies inside the image
    wheel: Wheel | None
    tt_metal: str  # commit, or ""
    vllm: str  # version or commit, or ""
    plugin: str  # commit, or ""
    cache_writes_by_rename: bool
    extra_flags: Mapping[str, str] = field(default_factory=dict)  # engine flag -> kind, beyond vLLM's own

    @property
    def cache_format(self) -> str:
        """What the tensor files' format depends on; part of the cache key."""
        if self.wheel is not None:
            return f"{self.wheel.name}-{self.wheel.version}"
        return f"tt-metal-{self.tt_metal}" if self.tt_metal else self.name


@dataclass(frozen=True, slots=True)
class Asked:
    """An arm with the pin and the model that it names: everything that was asked."""

    arm: Arm
    pin: Pin
    model: Model
