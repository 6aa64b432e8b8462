"""The cache of compiled kernels: ``$TT_METAL_CACHE/tt-metal-cache/BUILD_KEY/``, never cleaned by the engine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.sim.errors import BootError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KERNELS = ("cq_dispatch", "cq_prefetch", "matmul_multicore", "paged_cache_update", "sdpa_decode")
_BYTES = 4096


def compile_kernels(env: Mapping[str, str], shape: tuple[int, int]) -> tuple[Path, int] | None:
    """Make the kernels that are missing; return the folder and their number, None when TT_METAL_CACHE is not set.

    The build key follows from device and dispatch settings, here from the mesh. Raises BootError.
    """
    base = env.get("TT_METAL_CACHE")
    if not base:
        return None
    key = int.from_bytes(hashlib.sha256(repr(shape).encode()).digest()[:8], "big")
    folder = Path(base) / "tt-metal-cache" / str(key) / "kernels"
    try:
        return folder, sum(_missing(folder / name / "trisc0.elf") for name in _KERNELS)
    except OSError as error:
        raise BootError(f"TT_THROW @ build.cpp: cannot write to {folder}: {error.strerror}") from error


def _missing(path: Path) -> bool:
    """Make one kernel unless it is there; tell whether it was made."""
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(hashlib.shake_256(path.parent.name.encode()).digest(_BYTES))
    return True


def lines(made: tuple[Path, int] | None) -> Iterable[str]:
    """Give what tt-metal tells about it."""
    if made is not None:
        folder, count = made
        yield f"Kernel cache: {folder}, {count} kernels compiled"
