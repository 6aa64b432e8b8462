"""The key of a tensor cache: equal keys, equal bytes (docs/reference/launch.md, "Cache key").

ttnn looks a tensor file up by name, dtype and layout alone (tt-metal#52176, #45400, PR#26779), so the folder must say
everything else that the bytes depend on.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from ttstack.arm.canonical import canonical_json
from ttstack.arm.environment import resulting_env

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.arm.types import Asked

VERSION = 1
DIGITS = 16


@dataclass(frozen=True, slots=True)
class CacheKey:
    """``key`` is 16 hex digits over ``inputs``, which are stored beside the cache."""

    key: str
    inputs: Mapping[str, object]


def cache_key(asked: Asked) -> CacheKey:
    """Compute the key of the tensor cache that this arm reads and writes."""
    arm, model = asked.arm, asked.model
    env = resulting_env(asked)
    names = {*arm.weights_env, *(name for name in model.weights_env if name in env)}
    inputs: dict[str, object] = {
        "version": VERSION,
        "model": model.hf or model.path,
        "revision": model.revision,
        "mesh": arm.cards.mesh,
        "dtype": arm.engine.args.get("dtype", "auto"),
        "optimizations": arm.engine.tt.get("optimizations", "default"),
        "format": asked.pin.cache_format,
        "env": {name: env[name] for name in sorted(names)},
    }
    return CacheKey(sha256(canonical_json(inputs).encode()).hexdigest()[:DIGITS], inputs)
