"""Arm, pin, model and cards -> Launch, by the rules of docs/reference/launch.md."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from ttstack.arm.canonical import canonical_json
from ttstack.arm.environment import HF_FOLDER, resulting_env
from ttstack.arm.key import cache_key
from ttstack.render.cards import UNKNOWN, visible_to_process
from ttstack.render.errors import RenderError
from ttstack.render.launch import CACHE_LABEL, CACHE_TARGET, JIT_TARGET, Device, Launch, Mount, Port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.arm.types import Asked, Value
    from ttstack.host.types import Card

CACHE_ROOT = "/var/cache/tenstorrent"
HF_ON_HOST = "/var/lib/tenstorrent/hf"
HUGEPAGES = "/dev/hugepages-1G"  # UMD looks for exactly this mount (tt-umd, hugepage.cpp)

_PROGRAMS = {"vllm": ("vllm",), "sim": ("ttx-sim",)}
_NODE = re.compile(r"/dev/tenstorrent/([0-9]+)")


def flags(asked: Asked) -> tuple[str, ...]:
    """Write the engine's flags: the arm's own and the derived ones, sorted by name.

    Raises RenderError when ``engine.args`` holds a derived flag.
    """
    derived = _derived_flags(asked)
    own = asked.arm.engine.args
    taken = sorted(own.keys() & {*derived, "host", "port", "served-model-name", "revision", "additional-config"})
    if taken:
        raise RenderError(f"arm {asked.arm.name}: engine.args.{taken[0]} is derived and may not be set")
    words: list[str] = []
    for name, value in sorted({**own, **derived}.items()):
        words += _flag(name, value)
    return tuple(words)


def engine_argv(asked: Asked, command: Sequence[str] | None = None) -> tuple[str, ...]:
    """Write the engine's whole command: ``PROGRAM serve ROOT FLAGS...``.

    ``command`` stands in for the program, e.g. an interpreter with ``-m ttstack.sim``. Raises RenderError for kinds
    that have no program of their own when there is no ``command``.
    """
    kind = asked.arm.engine.kind
    program = tuple(command) if command else _PROGRAMS.get(kind)
    if program is None:
        raise RenderError(
            f"arm {asked.arm.name}: how an engine of kind {kind!r} is started is not known",
            hint=f"kinds that can be rendered: {', '.join(sorted(_PROGRAMS))}",
        )
    if not asked.model.root:
        raise RenderError(f"model {asked.model.name} has neither a path nor a Hugging Face id")
    return (*program, "serve", asked.model.root, *flags(asked))


def build_launch(  # noqa: PLR0913 - one start needs all of these, and all but two have a default
    asked: Asked,
    cards: Sequence[Card],
    *,
    hugepages: bool | None = None,
    run_id: str | None = None,
    slots: Sequence[str] = (),
    cache_root: str = CACHE_ROOT,
    engine_command: Sequence[str] | None = None,
) -> Launch:
    """Put everything together that a runtime needs.

    ``hugepages``: the host needs the 1 GiB hugepage mount; None: as its cards say, and cards that nobody looked at need
    none. ``run_id`` and ``slots`` become labels. Raises RenderError when the arm has no faithful launch.
    """
    arm = asked.arm
    if len(cards) != arm.cards.count:
        raise RenderError(f"arm {arm.name} takes {arm.cards.count} card(s), not {len(cards)}")
    in_container = arm.engine.runtime != "process"
    if not in_container and arm.overlays:
        raise RenderError(
            f"arm {arm.name}: overlays need a container, and the runtime is 'process'", hint="use docker or podman"
        )
    key = cache_key(asked).key
    cache_dir = f"{cache_root}/{key}"
    jit_dir = f"{cache_root}/jit/{arm.name}-{asked.pin.cache_format}"
    cache_path, jit_path = (CACHE_TARGET, JIT_TARGET) if in_container else (cache_dir, jit_dir)
    devices = _devices(asked, cards)
    needed = any(card.hugepages_needed for card in cards) if hugepages is None else hugepages
    return Launch(
        name=f"ttx-{arm.name}",
        runtime=arm.engine.runtime,
        image=asked.pin.image if in_container else "",
        argv=engine_argv(asked, engine_command),
        env=_environment(asked, cards, cache_path, jit_path),
        secrets=tuple(sorted(arm.engine.secrets)),
        devices=devices,
        mounts=_mounts(asked, cache_dir, jit_dir, hugepages=needed) if in_container else (),
        ports=(Port(arm.engine.host, arm.engine.port, arm.engine.port),),
        labels=_labels(asked, devices, key, run_id, slots),
        stop_grace_s=arm.engine.stop_grace_s,
        cache_key=key,
        cache_dir=cache_dir,
        cache_path=cache_path,
        jit_dir=jit_dir,
    )


def _derived_flags(asked: Asked) -> dict[str, Value]:
    engine, model = asked.arm.engine, asked.model
    derived: dict[str, Value] = {
        "host": engine.host if engine.runtime == "process" else "0.0.0.0",  # noqa: S104 - inside the container
        "port": engine.port,
        "served-model-name": model.served_name,
    }
    if not model.path and model.revision:
        derived["revision"] = model.revision
    if engine.tt:
        derived["additional-config"] = {"tt": engine.tt}
    return derived


def _flag(name: str, value: Value) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, tuple | list):
        return [word for item in value for word in _with_value(name, item)]
    return _with_value(name, value)


def _with_value(name: str, value: Value) -> list[str]:
    text = value if isinstance(value, str) else canonical_json(value)
    # argparse would take a word that starts with a dash for a flag.
    return [f"--{name}={text}"] if not text or text.startswith("-") else [f"--{name}", text]


def _environment(asked: Asked, cards: Sequence[Card], cache_path: str, jit_path: str) -> Mapping[str, str]:
    derived = {
        "MESH_DEVICE": asked.arm.cards.mesh,
        "TT_VISIBLE_DEVICES": ",".join(map(str, _visible(asked, cards))),
        "TT_CACHE_PATH": cache_path,
        "TT_METAL_CACHE": jit_path,
    }
    env = resulting_env(asked)
    taken = sorted(derived.keys() & env.keys())
    if taken:
        raise RenderError(f"arm {asked.arm.name}: {taken[0]} is derived and may not be set by the arm or its model")
    return MappingProxyType({**env, **derived})


def _visible(asked: Asked, cards: Sequence[Card]) -> Sequence[int | str]:
    """Name the cards among those that the engine sees: in a container its own, as a process all of the host's."""
    if asked.arm.engine.runtime != "process":
        return range(len(cards))
    if any(card.number == UNKNOWN for card in cards):
        raise RenderError(
            f"arm {asked.arm.name}: a process needs the cards' numbers, which only their host knows",
            hint="--here looks at this host",
        )
    return visible_to_process(cards, simulated=asked.arm.engine.kind == "sim")


def _devices(asked: Asked, cards: Sequence[Card]) -> tuple[Device, ...]:
    if asked.arm.engine.runtime == "process":
        return tuple(Device(card.node, card.node) for card in cards)
    devices = []
    for position, card in enumerate(cards):
        match = _NODE.fullmatch(card.node)
        devices.append(Device(card.node, f"/dev/tenstorrent/{match[1] if match else position}"))
    targets = [device.target for device in devices]
    for at, device in enumerate(devices):
        first = targets.index(device.target)
        if first != at:
            raise RenderError(
                f"arm {asked.arm.name}: {devices[first].source} and {device.source} would both be {device.target}"
                " in the container",
                hint="name all cards of an arm in the same way",
            )
    return tuple(devices)


def _mounts(asked: Asked, cache_dir: str, jit_dir: str, *, hugepages: bool) -> tuple[Mount, ...]:
    path = asked.model.path
    mounts = [
        Mount(path, path, read_only=True) if path else Mount(HF_ON_HOST, HF_FOLDER, read_only=False),
        Mount(cache_dir, CACHE_TARGET, read_only=False),
        Mount(jit_dir, JIT_TARGET, read_only=False),
    ]
    if hugepages:
        mounts.append(Mount(HUGEPAGES, HUGEPAGES, read_only=False))
    mounts += [
        Mount(str(overlay.source), f"{asked.pin.home}/{overlay.target}", read_only=True)
        for overlay in asked.arm.overlays
    ]
    return tuple(mounts)


def _labels(
    asked: Asked, devices: Sequence[Device], key: str, run_id: str | None, slots: Sequence[str]
) -> Mapping[str, str]:
    labels = {"ttstack.arm": asked.arm.name, CACHE_LABEL: key}
    numbers = [match[1] for match in (_NODE.fullmatch(device.source) for device in devices) if match]
    if len(numbers) == len(devices):
        labels["org.tenstorrent.tt-model.devices"] = ",".join(numbers)
    if run_id is not None:
        labels["ttstack.run"] = run_id
    if slots:
        labels["ttstack.slots"] = ",".join(slots)
    return MappingProxyType(labels)
