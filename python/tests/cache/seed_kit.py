"""Caches to seed from and to reserve beside: small, with plain files in ttnn's layout of names."""

from __future__ import annotations

import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ttstack.cache import transfer
from ttstack.cache.headers import SIMULATED, SIMULATED_MAGIC
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, read_marker, write_marker
from ttstack.cache.types import Builder, Marker
from ttstack.host.process import boot_id, myself
from ttstack.host.types import ProcessId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.cache.types import State

INPUTS: dict[str, object] = {
    "version": 1,
    "model": "Org/Model",
    "revision": "r1",
    "mesh": "P150x2",
    "dtype": "auto",
    "optimizations": "default",
    "format": "ttnn-0.81.1",
    "env": {},
}
IN_NAME = ("HEAD_BF4", "MLP_BF4")
OLD = 1_700_000_000_000_000_000  # ns; the times of files that were written long ago
NAMES = ("layers.0.w1_dtype_BFLOAT8_B_layout_TILE.tensorbin", "output.weight_dtype_BFLOAT8_B_layout_TILE.tensorbin")
INSIDE = "P150x2/tensor_cache_bfp8"
FIRST = f"{INSIDE}/{NAMES[0]}"


def with_env(**env: str) -> dict[str, object]:
    return INPUTS | {"env": env}


def builder(run: str = "run-1", *, alive: bool = True, arm: str = "arm") -> Builder:
    process = myself() if alive else ProcessId(os.getpid(), 1)
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return Builder(run, arm, "someone", process, boot_id(), namespace)


def begin(root: Path, inputs: Mapping[str, object], **fields: Any) -> Path:  # noqa: ANN401 - a marker's own fields
    """Make the directory of a cache that is being built."""
    key = key_of(inputs)
    folder = root / key
    folder.mkdir(parents=True)
    marker = Marker(key, inputs, "building", fields.pop("builder", builder()), "2030-01-01T00:00:00Z")
    write_marker(folder, replace(marker, **fields))
    return folder


def tensor(payload: bytes) -> bytes:
    """Put the simulated engine's header before a file's data."""
    return SIMULATED.pack(SIMULATED_MAGIC, len(payload), sha256(payload).digest()) + payload


def write_files(folder: Path, content: bytes = b"weights", names: tuple[str, ...] = NAMES) -> None:
    """Write some files as an engine does, long ago."""
    place = folder / INSIDE
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        (place / name).write_bytes(tensor(content + name.encode()))
        os.utime(place / name, ns=(OLD, OLD))


def finish(folder: Path, state: State = "complete", completed: str = "2030-01-01T01:00:00Z") -> Path:
    """Settle a cache as its files are now."""
    files = scan(folder)
    write_manifest(folder, files)
    marker = read_marker(folder)
    assert marker is not None
    total = sum(entry.size for entry in files)
    write_marker(folder, replace(marker, state=state, completed=completed, files=len(files), bytes=total))
    return folder


def complete(root: Path, inputs: Mapping[str, object], content: bytes = b"weights", **fields: Any) -> Path:  # noqa: ANN401
    """Make a complete cache."""
    folder = begin(root, inputs, **fields)
    write_files(folder, content)
    return finish(folder)


def files_of(folder: Path) -> dict[str, bytes]:
    """Give the content of a cache's files, without ours."""
    return {entry.path: (folder / entry.path).read_bytes() for entry in scan(folder)}


BF4 = with_env(HEAD_BF4="1")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return a complete cache, and one whose building begins."""
    return complete(tmp_path, INPUTS), begin(tmp_path, BF4)


def no_reflink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file system be one without reflinks, whatever it is."""
    monkeypatch.setattr(transfer, "_clone", lambda *_: False)
