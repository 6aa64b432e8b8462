"""Caches to look at: made as a build leaves them, with the files of the simulated engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, touch_used, write_marker
from ttstack.cache.types import Builder, Marker
from ttstack.host.process import boot_id, myself
from ttstack.host.types import ProcessId
from ttstack.sim.cache_files import store

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "tensors"
GONE = ProcessId(2, 1)  # kthreadd, but of another start: nobody


def inputs_of(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - what JSON can hold
    """Inputs of a key, as arm/key.py makes them."""
    inputs: dict[str, Any] = {"version": 1, "model": "org/name", "revision": "main", "mesh": "P150", "dtype": "auto"}
    return {**inputs, "optimizations": "default", "format": "ttnn-0.81.1", "env": {}, **changes}


def builder(*, alive: bool = False) -> Builder:
    """Somebody who builds: this very process, or one that is gone."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return Builder("20260101T000000-aaaaaa", "try", "me", myself() if alive else GONE, boot_id(), namespace)


def marker_of(inputs: dict[str, Any] | None = None, **fields: Any) -> Marker:  # noqa: ANN401 - a marker's own
    """Make a marker, building unless it is said otherwise."""
    inputs = inputs_of() if inputs is None else inputs
    known = {"state": "building", "builder": builder(), "made": "2026-01-01T00:00:00Z"}
    return Marker(key_of(inputs), inputs, **{**known, **fields})


def fill(folder: Path, files: int = 2, size: int = 64) -> None:
    """Write tensors as the simulated engine does."""
    folder.mkdir(parents=True, exist_ok=True)
    for at in range(files):
        store(folder / "P150" / f"layers.{at}_dtype_BFLOAT8_B_layout_TILE.tensorbin", bytes([at % 256]) * size)


def complete(root: Path, inputs: dict[str, Any] | None = None, *, files: int = 2, **fields: Any) -> Path:  # noqa: ANN401
    """Make a complete cache; return its folder."""
    inputs = inputs_of() if inputs is None else inputs
    folder = root / key_of(inputs)
    fill(folder, files)
    listed = scan(folder)
    write_manifest(folder, listed)
    known = {"state": "complete", "completed": "2026-01-02T00:00:00Z", "files": len(listed)}
    known["bytes"] = sum(file.size for file in listed)
    write_marker(folder, marker_of(inputs, **{**known, **fields}))
    touch_used(folder)
    return folder


def building(root: Path, inputs: dict[str, Any] | None = None, **fields: Any) -> Path:  # noqa: ANN401
    """Make a cache that is being built, by somebody who is gone; return its folder."""
    marker = marker_of(inputs, **fields)
    folder = root / marker.key
    folder.mkdir(parents=True)
    write_marker(folder, marker)
    return folder


def age(folder: Path, seconds: float) -> None:
    """Make all files below a folder older."""
    for path in folder.rglob("*"):
        seen = path.lstat()
        os.utime(path, (seen.st_atime - seconds, seen.st_mtime - seconds), follow_symlinks=False)
