"""Digests over what an arm, a pin and a model mean: not over their bytes, names, descriptions or places."""

from __future__ import annotations

from hashlib import sha256
from os.path import relpath
from typing import TYPE_CHECKING

from ttstack.arm.canonical import canonical_json

if TYPE_CHECKING:
    from ttstack.arm.types import Asked, Model, Pin


def arm_digest(asked: Asked) -> str:
    """Return 64 hex digits over what the resolved arm asks for.

    An overlay counts with its source's path relative to the arm's folder, so that a whole tree may move; what an
    overlay holds has a digest of its own, as pin and model have.
    """
    arm, engine = asked.arm, asked.arm.engine
    return _digest(
        {
            "pin": arm.pin,
            "model": arm.model,
            "engine": {
                "kind": engine.kind,
                "runtime": engine.runtime,
                "port": engine.port,
                "host": engine.host,
                "args": engine.args,
                "tt": engine.tt,
                "secrets": sorted(set(engine.secrets)),
                "boot_timeout_s": engine.boot_timeout_s,
                "stop_grace_s": engine.stop_grace_s,
            },
            "cards": {"count": arm.cards.count, "ids": arm.cards.ids, "mesh": arm.cards.mesh},
            "env": arm.env,
            "weights_env": arm.weights_env,
            "overlays": [{"source": relpath(o.source, arm.file.parent), "target": o.target} for o in arm.overlays],
            "expect": {
                "banners": arm.expect.banners,
                "served_root": arm.expect.served_root,
                "max_model_len": arm.expect.max_model_len,
            },
        }
    )


def pin_digest(pin: Pin) -> str:
    """Return 64 hex digits over the versions that a pin names."""
    wheel = pin.wheel
    return _digest(
        {
            "image": pin.image,
            "home": pin.home,
            "wheel": None if wheel is None else [wheel.name, wheel.version, wheel.python, wheel.sha256],
            "tt_metal": pin.tt_metal,
            "vllm": pin.vllm,
            "plugin": pin.plugin,
            "cache_writes_by_rename": pin.cache_writes_by_rename,
            "extra_flags": pin.extra_flags,
        }
    )


def model_digest(model: Model) -> str:
    """Return 64 hex digits over what a model is and requires; its expected cache size is not part of that.

    What is declared of its files' names counts where it is declared: other caches' files are taken on its word.
    """
    return _digest(
        {
            "hf": model.hf,
            "path": model.path,
            "revision": model.revision,
            "served_name": model.served_name,
            "env": model.env,
            "weights_env": sorted(set(model.weights_env)),
        }
        | ({"weights_env_in_name": sorted(set(in_name))} if (in_name := model.weights_env_in_name) else {})
    )


def _digest(meaning: object) -> str:
    return sha256(canonical_json(meaning).encode()).hexdigest()
