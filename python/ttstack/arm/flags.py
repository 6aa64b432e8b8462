"""Which flags and which ``tt`` options an engine takes, and with what kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ttstack.arm.vllm_flags import VLLM

KINDS: dict[str, str] = {
    "bool": "true or false",
    "switch": "true (there is no negative form; leave it out instead)",
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "list": "text, a number or a list of one (the engine keeps only the last of a repeated flag)",
    "append": "text or a list of texts",
    "json": "a table",
}
"""Kind of a flag -> what a person must write."""

SIM: dict[str, str] = {
    "sim-prefill-rate": "float",
    "sim-token-ms": "float",
    "sim-max-batch": "int",
    "sim-boot-ms": "int",
    "sim-teardown-ms": "int",
    "sim-tokens-per-chunk": "int",
    "sim-fault": "append",
}
"""What the simulated engine takes besides vLLM's flags."""

DOC: dict[str, str] = {
    "max-model-len": "longest prompt plus answer of one request, in tokens",
    "max-num-seqs": "most requests that run at once",
    "max-num-batched-tokens": "most tokens in one engine step",
    "block-size": "tokens in one block of the KV cache",
    "dtype": "data type of the weights as vLLM names it; part of the cache key",
    "async-scheduling": "prepare the next step while the cards work on this one",
    "enable-prefix-caching": "reuse the KV cache of equal beginnings of prompts",
    "enable-chunked-prefill": "split long prompts over several steps",
    "seed": "seed of the engine's random numbers",
    "sim-prefill-rate": "simulated engine: prompt tokens per second",
    "sim-token-ms": "simulated engine: milliseconds per generated token",
    "sim-max-batch": "simulated engine: requests in one step",
    "sim-boot-ms": "simulated engine: duration of the whole boot, milliseconds",
    "sim-teardown-ms": "simulated engine: duration of the device teardown, milliseconds",
    "sim-tokens-per-chunk": "simulated engine: tokens in one streamed chunk",
    "sim-fault": "simulated engine: a fault to show, or a list of them",
}

REFUSED: dict[str, str] = {
    "host": "derived: write engine.host",
    "port": "derived: write engine.port",
    "served-model-name": "derived: the model's served_name in models.toml",
    "revision": "derived: the model's revision in models.toml",
    "model": "derived: write model",
    "additional-config": "derived: write engine.tt",
    "config": "its file would hide flags from this one: write them here",
    "uds": "the engine must listen on engine.port",
    "api-key": "a secret never goes into a command line: name VLLM_API_KEY in engine.secrets",
    "hf-token": "a secret never goes into a command line: name HF_TOKEN in engine.secrets",
}
"""Flags that an arm may not set -> what to do instead."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the Tenstorrent plugin."""

    kind: str  # as in KINDS
    doc: str
    choices: tuple[str, ...] = ()


_FABRIC = (
    "DISABLED FABRIC_1D FABRIC_1D_NEIGHBOR_EXCHANGE FABRIC_1D_RING FABRIC_2D FABRIC_2D_TORUS_X FABRIC_2D_TORUS_Y "
    "FABRIC_2D_TORUS_XY FABRIC_2D_DYNAMIC FABRIC_2D_DYNAMIC_TORUS_X FABRIC_2D_DYNAMIC_TORUS_Y "
    "FABRIC_2D_DYNAMIC_TORUS_XY CUSTOM"
)

TT: dict[str, Option] = {
    "sample_on_device_mode": Option("str", "which steps sample on the cards", ("all", "decode_only")),
    "trace_mode": Option("str", "which steps run as captured traces", ("all", "decode_only", "none")),
    "enable_model_warmup": Option("bool", "warm the model up before the server is healthy"),
    "trace_region_size": Option("int", "bytes of device memory kept for traces"),
    "worker_l1_size": Option("int", "bytes of L1 that kernels may use"),
    "l1_small_size": Option("int", "bytes of L1 for small buffers"),
    "fabric_config": Option("str", "a ttnn.FabricConfig name", tuple(_FABRIC.split())),
    "fabric_reliability_mode": Option("str", "what a broken link does", ("STRICT_INIT", "RELAXED_INIT")),
    "dispatch_core_axis": Option("str", "where the dispatch cores lie", ("row", "col")),
    "optimizations": Option("str", "precision profile; part of the cache key", ("performance", "accuracy")),
    "register_test_models": Option("bool", "register models that are for tests only"),
    "rank_binding": Option("str", "tt-run's rank binding file"),
    "mpi_args": Option("str", "arguments for mpirun"),
}
"""Options of vllm-tt-plugin's ``additional_config["tt"]``. The plugin ignores an unknown one without a word."""


def known_flags(kind: str, extra: Mapping[str, str] | None = None) -> Mapping[str, str] | None:
    """Flag -> kind for an engine, with a pin's additions; None where the engine's flags are not known."""
    if kind not in {"vllm", "sim"}:
        return None
    flags = VLLM | SIM if kind == "sim" else VLLM
    return flags | {name: value for name, value in (extra or {}).items() if not name.startswith("tt.")}


def known_options(extra: Mapping[str, str] | None = None) -> Mapping[str, Option]:
    """``tt`` options, with those that a pin adds as ``"tt.NAME"``."""
    added = {name.removeprefix("tt."): kind for name, kind in (extra or {}).items() if name.startswith("tt.")}
    return TT | {name: Option(kind, "added by the pin") for name, kind in added.items()}


def fits(kind: str, value: object) -> bool:
    """Tell whether a TOML value can be given to a flag of this kind."""
    scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    if kind == "list":
        return scalar or (isinstance(value, list) and len(value) == 1 and fits("list", value[0]))
    if kind == "append":
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))
    return {
        "bool": isinstance(value, bool),
        "switch": value is True,
        "int": isinstance(value, int) and scalar,
        "float": scalar and not isinstance(value, str),
        "str": isinstance(value, str),
        "json": isinstance(value, Mapping),
    }[kind]
