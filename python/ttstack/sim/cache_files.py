"""The tensor cache: the converted weights, one file per tensor, in ttnn's layout.

As ``ttnn.as_tensor(cache_file_name=...)`` does it: a file is found by tensor name, dtype and layout alone and taken as
it is, whatever weights, mesh or environment it was made from; one that does not load is made again with no more than a
warning (tt-metal#25693); files are written beside and renamed.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.sim.errors import BootError

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"TTXTNSR1"
_HEADER = struct.Struct("<8sQ32s")  # magic, bytes of payload, sha256 of payload

FORMATS = {"bfp8": "BFLOAT8_B", "bf16": "BFLOAT16"}
"""Suffix of the cache's folder to the dtype in the names of its files."""

_LAYER = (
    "attention.wqkv_sharded_2d",
    "attention.wo_width_sharded_2d",
    "feed_forward.w1_sharded",
    "feed_forward.w2_sharded",
    "feed_forward.w3_sharded",
)


class CorruptError(BootError):
    """A cache file is no whole tensor file."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a tensor's bytes follow from: everything that a sound cache key must hold."""

    weights: bytes  # digest of the checkpoint
    mesh: tuple[int, int]
    dtype: str  # BFLOAT8_B or BFLOAT16
    env: tuple[tuple[str, str], ...]  # environment that changes the weights, sorted
    size: int  # bytes of each tensor

    def make(self, tensor: str) -> bytes:
        """Convert one tensor."""
        about = repr((self.weights, self.mesh, self.dtype, self.env, tensor)).encode()
        return hashlib.shake_256(about).digest(self.size)


def tensor_names(layers: int) -> list[str]:
    """Names of a model's tensors, in the order in which they are loaded."""
    blocks = [f"layers.{layer}.{part}" for layer in range(layers) for part in _LAYER]
    return ["tok_embeddings.weight", *blocks, "output.weight"]


def file_name(tensor: str, dtype: str) -> str:
    """Name of a tensor's file."""
    return f"{tensor}_dtype_{dtype}_layout_TILE.tensorbin"


def load(path: Path) -> bytes:
    """Payload of a cache file. Raises FileNotFoundError when it is absent, CorruptError when it is not whole."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CorruptError(f"cannot read {path}: {error.strerror}") from error
    if len(data) < _HEADER.size:
        raise CorruptError(f"{path}: truncated or corrupt")
    magic, size, digest = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if magic != _MAGIC or size != len(payload):
        raise CorruptError(f"{path}: truncated or corrupt")
    if hashlib.sha256(payload).digest() != digest:
        raise CorruptError(f"Cannot validate tensor data of {path}")
    return payload


def store(path: Path, payload: bytes, *, corrupt: bool = False) -> None:
    """Write a cache file beside its name and rename it. Raises BootError when it cannot be written."""
    header = _HEADER.pack(_MAGIC, len(payload), hashlib.sha256(payload).digest())
    beside = path.with_name(f"{path.name}.tmp.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(header + (payload[: len(payload) // 2] if corrupt else payload))
        beside.rename(path)
    except OSError as error:
        raise BootError(
            f'TT_FATAL @ serialization.cpp: Failed to write tensor data to "{path}"',
            "info:",
            f'errno={error.errno} "{error.strerror}"',
        ) from error
