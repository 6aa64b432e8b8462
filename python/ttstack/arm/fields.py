"""What an arm may hold: the table that the validation, the JSON Schema and docs/reference/arm.md are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ttstack.arm.flags import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["one", "text", "path", "int", "number", "bool", "texts", "table", "tables", "env", "args", "tt", "kinds"]

WORDS: dict[str, str] = {
    "one": "1 (the only schema so far)",
    "text": "text",
    "path": "text (a path)",
    "int": "an integer",
    "number": "a number",
    "bool": "true or false",
    "texts": "a list of texts",
    "table": "a table",
    "tables": "a list of tables",
    "env": "a table of NAME = 'text'",
    "args": "a table of flags",
    "tt": "a table",
    "kinds": "a table of flag = 'kind'",
}
"""Kind -> what is expected, in words."""

EXACT = 2**53
"""The largest integer that JSON carries exactly."""

ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a file. ``pattern`` must match the whole text (or each text of a list)."""

    kind: Kind
    doc: str
    required: bool = False
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = EXACT
    pattern: str = ""
    expects: str = ""  # what the pattern means, in words
    default: object = None
    otherwise: str = ""  # what holds when the key is absent, where that is no constant
    example: str = ""  # a value in TOML; of a table with free names: a line of it
    fields: Mapping[str, Field] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        """What a person must write here, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.expects:
            return self.expects
        if self.kind == "int":
            return (
                f"an integer from {self.low} to {self.high}" if self.high < EXACT else f"an integer from {self.low} up"
            )
        return WORDS[self.kind]


SCHEMA = Field("one", "version of this format", required=True, example="1")


def description(example: str) -> Field:
    """Return the field that every file has for people."""
    return Field("text", "one line for people", default="", example=f'"{example}"')


_WEIGHTS = Field(
    "env",
    "environment that changes the bytes of the tensor cache: part of the cache key",
    example='{ QWEN36_LM_HEAD_BF4 = "1" }',
)

ENGINE: dict[str, Field] = {
    "kind": Field(
        "text", "the program that serves", required=True, choices=("vllm", "asgi", "demo", "sim"), example='"vllm"'
    ),
    "runtime": Field(
        "text",
        "what starts it",
        choices=("docker", "podman", "process"),
        otherwise="docker, or process for the simulated engine",
        example='"docker"',
    ),
    "port": Field("int", "port of the HTTP server", required=True, low=1, high=65535, example="8000"),
    "host": Field(
        "text",
        "address that the port is published on",
        default="127.0.0.1",
        pattern=r"[0-9A-Za-z.:\[\]-]+",
        expects="an address such as 127.0.0.1",
        example='"127.0.0.1"',
    ),
    "args": Field(
        "args",
        "the engine's flags under their own names, without the leading dashes",
        example="{ max-model-len = 65536, max-num-seqs = 32, async-scheduling = false }",
    ),
    "tt": Field(
        "tt",
        'options of the Tenstorrent plugin: vLLM\'s --additional-config, key "tt"',
        example='{ trace_mode = "all", fabric_config = "FABRIC_1D" }',
    ),
    "secrets": Field(
        "texts",
        "environment variables that are passed on by name, never by value",
        pattern=ENV_NAME,
        expects="names of environment variables",
        example='["HF_TOKEN"]',
    ),
    "boot_timeout_s": Field(
        "int", "seconds until the engine must be ready", low=1, high=86400, default=5400, example="5400"
    ),
    "stop_grace_s": Field(
        "int",
        "seconds that the engine gets to close its cards before it is killed",
        low=1,
        high=3600,
        default=120,
        example="120",
    ),
}

CARDS: dict[str, Field] = {
    "count": Field("int", "how many cards", low=1, high=32, otherwise="as many as ids", example="2"),
    "ids": Field(
        "texts",
        "which cards, when any will not do",
        pattern=r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]|[0-9a-fA-F]{16}|blackhole-[0-9a-fA-F]+",
        expects="BDF (0000:01:00.0), serial (16 hex digits) or udev's name (blackhole-<asic id>) of each card",
        otherwise="any",
        example='["0000:01:00.0", "0000:02:00.0"]',
    ),
    "mesh": Field(
        "text",
        "MESH_DEVICE",
        otherwise="P150, P150x2, P150x4 or P150x8, by the count",
        example='"P150x2"',
    ),
}

OVERLAY: dict[str, Field] = {
    "source": Field(
        "path",
        "folder to put over the image's own, relative to this file",
        required=True,
        example='"../tt-metal/models/demos/qwen36"',
    ),
    "target": Field(
        "path", "where, relative to tt-metal's home in the image", required=True, example='"models/demos/qwen36"'
    ),
}

EXPECT: dict[str, Field] = {
    "banners": Field(
        "texts",
        'lines that the engine must print at start; "re:" starts a regular expression',
        example='["grid (1, 2) is created", "re:GPU KV cache size: [0-9,]+ tokens"]',
    ),
    "served_root": Field(
        "text",
        'what /v1/models must name as root: "checkpoint" is the model\'s own path or id',
        default="checkpoint",
        example='"checkpoint"',
    ),
    "max_model_len": Field(
        "int", "what /v1/models must name as max_model_len", low=1, otherwise="not checked", example="65536"
    ),
}

ARM: dict[str, Field] = {
    "schema": SCHEMA,
    "description": description("what production serves"),
    "extends": Field(
        "text",
        "name or path of the arm to start from: its tables are merged, its lists replaced",
        example='"prod"',
    ),
    "pin": Field(
        "text", "name of a file in pins/: which versions the image is made of", required=True, example='"current"'
    ),
    "model": Field("text", "a key of models.toml", required=True, example='"qwen3.6-27b"'),
    "engine": Field("table", "the program that serves", required=True, fields=ENGINE),
    "cards": Field("table", "which cards", required=True, fields=CARDS),
    "env": Field("env", "environment of the engine", fields={"weights": _WEIGHTS}, example='TT_LOGGER_LEVEL = "info"'),
    "overlay": Field("tables", "source trees to put over the image's own, read-only", fields=OVERLAY),
    "expect": Field("table", "what the engine must look like when it runs", fields=EXPECT),
}

FLAG_KINDS = tuple(KINDS)
