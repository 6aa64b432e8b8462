"""The command line: vLLM's own flags, and those that set the simulation."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.errors import UsageError
from ttstack.sim.faults import Faults
from ttstack.sim.faults import parse as parse_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that the engine reads. ``kind``: text, count (whole number), number, switch, object (JSON) or list."""

    name: str
    kind: str
    default: str
    meaning: str


FLAGS = (
    Flag("host", "text", "127.0.0.1", "address to listen on"),
    Flag("port", "count", "8000", "port to listen on; 0 takes a free one and names it in the log"),
    Flag("served-model-name", "list", "ROOT", "names that requests may use; the first is the id in answers"),
    Flag("max-model-len", "count", "max_position_embeddings of ROOT/config.json", "longest prompt and answer, tokens"),
    Flag("max-num-seqs", "count", "32", "requests in the batch at once; part of the size of the KV cache"),
    Flag("block-size", "count", "64", "tokens in a block of the KV cache"),
    Flag("dtype", "text", "auto", "named in the log; the tensor cache is bfloat8_b all the same"),
    Flag("seed", "count", "0", "named in the log"),
    Flag("additional-config", "object", "{}", 'the keys under "tt" are used in the log and for the cache\'s format'),
    Flag("enable-prefix-caching", "switch", "on", "blocks seen before cost no prefill"),
    Flag("async-scheduling", "switch", "on", "named in the log"),
    Flag("enable-prompt-tokens-details", "switch", "off", "usage tells the cached tokens of the prompt"),
    Flag("api-key", "list", "$VLLM_API_KEY", "/v1/* asks for this bearer token"),
    Flag("disable-uvicorn-access-log", "switch", "off", "no line per request in the log"),
    Flag("sim-prefill-rate", "number", "20000", "prompt tokens per second, one prompt at a time; 0 is no delay"),
    Flag("sim-token-ms", "number", "5", "ms from one token of a request to its next, whatever the batch"),
    Flag("sim-max-batch", "count", "max-num-seqs", "requests in the batch at once; later ones wait their turn"),
    Flag("sim-boot-ms", "number", "400", "length of a cold boot, ms; a warm one saves most of the cache's half"),
    Flag("sim-teardown-ms", "number", "100", "ms from the stop signal to the exit, once the devices are open"),
    Flag("sim-tokens-per-chunk", "count", "1", "tokens in each event of a stream"),
    Flag("sim-fault", "list", "", "a fault, NAME or NAME:ARG"),
)
"""Every flag that the engine reads; any other one of vLLM's is taken and shown among the non-default args."""

_KINDS = {flag.name: flag.kind for flag in FLAGS}
_DEFAULTS = {flag.name: flag.default for flag in FLAGS}
_POSITIVE = {"max-model-len", "max-num-seqs", "block-size", "sim-max-batch", "sim-tokens-per-chunk"}


@dataclass(frozen=True, slots=True)
class Timing:
    """The timing model; times in ms, rate in tokens/s."""

    prefill_rate: float
    token_ms: float
    boot_ms: float
    teardown_ms: float
    tokens_per_chunk: int


@dataclass(frozen=True, slots=True)
class Settings:
    """One command line, read."""

    root: str
    given: Mapping[str, object]  # vLLM's non-default args, keys with underscores
    host: str
    port: int
    names: tuple[str, ...]
    max_model_len: int | None
    max_num_seqs: int
    max_batch: int
    block_size: int
    dtype: str
    seed: int
    prefix_caching: bool
    async_scheduling: bool
    prompt_details: bool
    access_log: bool
    api_keys: tuple[str, ...]
    tt: Mapping[str, object]
    timing: Timing
    faults: Faults


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"argument --{name}: invalid int value: {text!r}")
    value = int(text)
    if name in _POSITIVE and not value:
        raise UsageError(f"argument --{name}: must be at least 1")
    if name == "port" and value > _MAX_PORT:
        raise UsageError(f"argument --port: {value} is not a port")
    return value


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"argument --{name}: invalid value: {text!r} (a number of at least 0 is expected)")
    return value


def _object(name: str, text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"argument --{name}: Value {text!r} cannot be converted to JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"argument --{name}: a JSON object is expected, got {text}")
    return value


def _words(words: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("--") or word == "--":
            raise UsageError(f"unrecognized argument: {word!r}")
        name, equals, text = word[2:].partition("=")
        at += 1
        value: str | None = text if equals else None
        switch = _KINDS.get(name) == "switch" or name.startswith("no-")
        if not equals and not switch and at < len(words) and not words[at].startswith("-"):
            value = words[at]
            at += 1
        yield name, value


def _read(words: Sequence[str]) -> dict[str, object]:
    """Map flags to values by their names without ``no-``; a flag that is given twice becomes a list, as in vLLM."""
    values: dict[str, object] = {}
    for name, text in _words(words):
        kind = _KINDS.get(name, "")
        if text is None and name.startswith("no-"):
            if _KINDS.get(name.removeprefix("no-"), "switch") != "switch":
                raise UsageError(f"unrecognized argument: --{name}")
            values[name.removeprefix("no-")] = False
        elif text is None:
            if kind not in {"", "switch"}:
                raise UsageError(f"argument --{name}: expected one argument")
            values[name] = True
        elif kind == "switch":
            raise UsageError(f"argument --{name}: takes no value, got {text!r}")
        elif kind == "list":
            values[name] = (*_list(values.get(name)), text)
        elif kind in {"count", "number", "object"}:
            values[name] = {"count": _count, "number": _number, "object": _object}[kind](name, text)
        elif not kind and name in values:
            values[name] = (*_list(values[name]), text)
        else:
            values[name] = text
    return values


def _list(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _tt(values: Mapping[str, object]) -> Mapping[str, object]:
    config = values.get("additional-config")
    tt = config.get("tt", {}) if isinstance(config, dict) else {}
    if not isinstance(tt, dict):
        raise UsageError('argument --additional-config: "tt" must be a JSON object')
    return tt


def _given(root: str, values: Mapping[str, object]) -> dict[str, object]:
    given: dict[str, object] = {"model": root}
    for name, value in values.items():
        if not name.startswith("sim-"):
            shown: object = list(value) if isinstance(value, tuple) else value
            given[name.replace("-", "_")] = "***" if name == "api-key" else shown
    return given


def parse(argv: Sequence[str], env: Mapping[str, str]) -> Settings:
    """Read ``serve ROOT FLAGS...``. Raises UsageError."""
    if len(argv) < 2 or argv[0] != "serve" or argv[1].startswith("-"):  # noqa: PLR2004 - the verb and ROOT
        raise UsageError("expected: serve ROOT [--flag [VALUE] ...]", hint="the flags are in docs/reference/sim.md")
    root, values = argv[1], _read(argv[2:])

    def text(name: str) -> str:
        return str(values.get(name, _DEFAULTS[name]))

    def number(name: str) -> float:
        return float(text(name))

    def count(name: str) -> int:
        return int(text(name))

    def switch(name: str) -> bool:
        return bool(values.get(name, _DEFAULTS[name] == "on"))

    seqs = count("max-num-seqs")
    key = env.get("VLLM_API_KEY", "")
    return Settings(
        root=root,
        given=_given(root, values),
        host=text("host"),
        port=count("port"),
        names=_list(values.get("served-model-name")) or (root,),
        max_model_len=count("max-model-len") if "max-model-len" in values else None,
        max_num_seqs=seqs,
        max_batch=min(seqs, count("sim-max-batch")) if "sim-max-batch" in values else seqs,
        block_size=count("block-size"),
        dtype=text("dtype"),
        seed=count("seed"),
        prefix_caching=switch("enable-prefix-caching"),
        async_scheduling=switch("async-scheduling"),
        prompt_details=switch("enable-prompt-tokens-details"),
        access_log=not switch("disable-uvicorn-access-log"),
        api_keys=_list(values.get("api-key")) or ((key,) if key else ()),
        tt=_tt(values),
        timing=Timing(
            prefill_rate=number("sim-prefill-rate"),
            token_ms=number("sim-token-ms"),
            boot_ms=number("sim-boot-ms"),
            teardown_ms=number("sim-teardown-ms"),
            tokens_per_chunk=count("sim-tokens-per-chunk"),
        ),
        faults=parse_faults(_list(values.get("sim-fault"))),
    )
