"""The checkpoint: ``config.json`` and ``weights.sim`` in the folder ROOT."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ttstack.sim.errors import BootError
from ttstack.sim.tokens import VOCABULARY

_DEFAULT_LEN = 2048  # vLLM's own, for a config that does not tell
_MAX_LAYERS = 1000
_MAX_TENSOR_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What ``config.json`` says."""

    architecture: str
    max_len: int  # tokens
    layers: int
    tensor_bytes: int  # of each file of the tensor cache


def read_config(root: str) -> Checkpoint:
    """Read ROOT/config.json. Raises BootError."""
    try:
        config = json.loads((Path(root) / "config.json").read_text())
        if not isinstance(config, dict):
            raise TypeError("it is no JSON object")  # noqa: TRY301 - told with the other ways to be unreadable
    except (OSError, ValueError, TypeError) as error:
        raise BootError(f"OSError: Can't load the configuration of '{root}': {error}") from error

    def whole(key: str, default: int, most: int) -> int:
        value = config.get(key, default)
        if type(value) is not int or not 1 <= value <= most:
            raise BootError(f"ValueError: {key} of {root}/config.json must be a whole number from 1 to {most}")
        return value

    names = config.get("architectures")
    return Checkpoint(
        architecture=str(names[0]) if isinstance(names, list) and names else "SimForCausalLM",
        max_len=whole("max_position_embeddings", _DEFAULT_LEN, 1 << 40),
        layers=whole("num_hidden_layers", 2, _MAX_LAYERS),
        tensor_bytes=whole("sim_tensor_bytes", 4096, _MAX_TENSOR_BYTES),
    )


def read_weights(root: str) -> bytes:
    """Digest (sha256, 32 bytes) of ROOT/weights.sim. Raises BootError."""
    try:
        return hashlib.sha256((Path(root) / "weights.sim").read_bytes()).digest()
    except OSError as error:
        raise BootError(f"RuntimeError: Cannot find any model weights with `{root}`: {error.strerror}") from error


def make_model(folder: Path, *, weights: str = "sim", max_len: int = 65536, tensor_bytes: int = 4096) -> Path:
    """Make a checkpoint that the simulated engine serves; return its folder. Files that are there stay as they are.

    ``weights`` is any text: other text is another model. ``max_len`` in tokens, ``tensor_bytes`` is the size of each of
    the twelve files of its tensor cache. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["SimForCausalLM"],
        "max_position_embeddings": max_len,
        "num_hidden_layers": 2,
        "sim_tensor_bytes": tensor_bytes,
        "vocab_size": VOCABULARY,
    }
    for name, text in (("weights.sim", weights), ("config.json", json.dumps(config, indent=2) + "\n")):
        path = folder / name
        if not path.exists():
            beside = path.with_name(f".{name}.{os.getpid()}")
            beside.write_text(text)
            beside.rename(path)
    return folder
