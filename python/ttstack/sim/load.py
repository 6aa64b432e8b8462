"""Loading: checkpoint and tensor cache to the tensors that the text follows from."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.sim import cache_files, mesh
from ttstack.sim.model import read_weights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.sim.banners import Log
    from ttstack.sim.flags import Settings
    from ttstack.sim.model import Checkpoint

_WARM = 0.1  # what loading a file takes of the time that converting it takes


def folder(settings: Settings, env: Mapping[str, str], shape: tuple[int, int]) -> Path:
    """Folder of this device's caches: TT_CACHE_PATH, else model_cache/ROOT, with the device's name appended."""
    base = Path(env.get("TT_CACHE_PATH") or Path("model_cache") / settings.root.lstrip("/"))
    if "wrong-cache-dir" in settings.faults:
        base = base.with_name(f"{base.name}-elsewhere")
    return base / mesh.device_name(shape[0] * shape[1])


def weights_env(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Environment that changes the converted weights: names that end in ``_BF4``, as in tt-metal PR#53543."""
    return tuple(sorted((name, value) for name, value in env.items() if name.endswith("_BF4")))


@dataclass(frozen=True, slots=True)
class Loader:
    """One load. ``pause_s`` is the time that a cold load takes, seconds, spread over the files."""

    settings: Settings
    env: Mapping[str, str]
    log: Log
    shape: tuple[int, int]
    checkpoint: Checkpoint
    pause_s: float

    async def load(self) -> bytes:
        """Digest of all tensors. Raises BootError when the weights are missing or a file cannot be written."""
        fine = self.settings.tt.get("optimizations") == "accuracy"
        suffix = "bf16" if fine else "bfp8"
        recipe = cache_files.Recipe(
            weights=read_weights(self.settings.root),
            mesh=self.shape,
            dtype=cache_files.FORMATS[suffix],
            env=weights_env(self.env),
            size=self.checkpoint.tensor_bytes,
        )
        place = folder(self.settings, self.env, self.shape) / f"tensor_cache_{suffix}"
        names = cache_files.tensor_names(self.checkpoint.layers)
        digest = hashlib.sha256()
        corrupt = "corrupt-cache" in self.settings.faults
        for name in names:
            payload, made = self._tensor(recipe, place, name, corrupt=corrupt)
            corrupt = corrupt and not made
            digest.update(payload)
            await asyncio.sleep(self.pause_s / len(names) * (1 if made else _WARM))
        return digest.digest()

    def _tensor(self, recipe: cache_files.Recipe, place: Path, name: str, *, corrupt: bool) -> tuple[bytes, bool]:
        """One tensor, and whether it had to be converted."""
        path = place / cache_files.file_name(name, recipe.dtype)
        try:
            return cache_files.load(path), False
        except FileNotFoundError:
            self.log.loguru("ttnn.operations.core:as_tensor:640", f"Generating cache for {path}", "DEBUG")
        except cache_files.CorruptError as error:
            text = f"Failed to load cache for {path}: {error}"
            self.log.loguru("ttnn.operations.core:as_tensor:664", text, "WARNING")
        payload = recipe.make(name)
        cache_files.store(path, payload, corrupt=corrupt)
        return payload, True
