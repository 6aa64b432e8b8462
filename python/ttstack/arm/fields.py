"""What arm, pin and model files may hold: one table each, used by the validation and by the JSON Schema."""

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

ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a file. ``pattern`` must match the whole text (or each text of a list)."""

    kind: Kind
    doc: str
    required: bool = False
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 2**53
    pattern: str = ""
    expects: str = ""  # what the pattern means, in words
    default: object = None
    fields: Mapping[str, Field] = field(default_factory=dict)

    @property
    def expected(self) -> str:
        """What a person must write here, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.expects:
            return self.expects
        if self.kind == "int":
            return f"an integer from {self.low} to {self.high}"
        return WORDS[self.kind]


_SCHEMA = Field("one", "version of this format", required=True)


def _commit(doc: str) -> Field:
    return Field("text", doc, default="", pattern="|[0-9a-f]{7,40}", expects="a commit (7 to 40 hex digits)")


_WEIGHTS = Field("env", "environment that changes the bytes of the tensor cache: part of the cache key")

ENGINE: dict[str, Field] = {
    "kind": Field("text", "the program that serves", required=True, choices=("vllm", "asgi", "demo", "sim")),
    "runtime": Field(
        "text",
        "what starts it; docker by default, process for the simulated engine",
        choices=("docker", "podman", "process"),
    ),
    "port": Field("int", "port of the HTTP server", required=True, low=1, high=65535),
    "host": Field(
        "text",
        "address that the port is published on",
        default="127.0.0.1",
        pattern=r"[0-9A-Za-z.:\[\]-]+",
        expects="an address such as 127.0.0.1",
    ),
    "args": Field("args", "the engine's flags under their own names, without the leading dashes"),
    "tt": Field("tt", 'options of the Tenstorrent plugin: vLLM\'s --additional-config, key "tt"'),
    "secrets": Field(
        "texts",
        "environment variables that are passed on by name, never by value",
        pattern=ENV_NAME,
        expects="names of environment variables",
    ),
    "boot_timeout_s": Field("int", "seconds until the engine must be ready", low=1, high=86400, default=5400),
    "stop_grace_s": Field(
        "int", "seconds that the engine gets to close its cards before it is killed", low=1, high=3600, default=120
    ),
}

CARDS: dict[str, Field] = {
    "count": Field("int", "how many cards", low=1, high=32),
    "ids": Field(
        "texts",
        "which cards, when any will not do",
        pattern=r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]|[0-9a-fA-F]{16}|blackhole-[0-9a-fA-F]+",
        expects="BDF (0000:01:00.0), serial (16 hex digits) or udev's name (blackhole-<asic id>) of each card",
    ),
    "mesh": Field("text", "MESH_DEVICE; by default P150, P150x2, P150x4 or P150x8 by the count"),
}

OVERLAY: dict[str, Field] = {
    "source": Field("path", "folder to put over the image's own, relative to this file", required=True),
    "target": Field("path", "where, relative to tt-metal's home in the image", required=True),
}

EXPECT: dict[str, Field] = {
    "banners": Field("texts", 'lines that the engine must print at start; "re:" starts a regular expression'),
    "served_root": Field(
        "text",
        'what /v1/models must name as root: "checkpoint" is the model\'s own path or id',
        default="checkpoint",
    ),
    "max_model_len": Field("int", "what /v1/models must name as max_model_len", low=1),
}

ARM: dict[str, Field] = {
    "schema": _SCHEMA,
    "description": Field("text", "one line for people", default=""),
    "extends": Field("text", "name or path of the arm to start from: its tables are merged, its lists replaced"),
    "pin": Field("text", "name of a file in pins/: which versions the image is made of", required=True),
    "model": Field("text", "a key of models.toml", required=True),
    "engine": Field("table", "the program that serves", required=True, fields=ENGINE),
    "cards": Field("table", "which cards", required=True, fields=CARDS),
    "env": Field("env", "environment of the engine", fields={"weights": _WEIGHTS}),
    "overlay": Field("tables", "source trees to put over the image's own, read-only", fields=OVERLAY),
    "expect": Field("table", "what the engine must look like when it runs", fields=EXPECT),
}

WHEEL: dict[str, Field] = {
    "name": Field("text", "distribution name", required=True, pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*", expects="a name"),
    "version": Field("text", "version", required=True, pattern=r"[0-9][0-9A-Za-z.+_-]*", expects="a version"),
    "python": Field("text", "Python tag", required=True, pattern="cp3[0-9]+", expects="a tag such as cp312"),
    "sha256": Field("text", "hash of the file", required=True, pattern="[0-9a-f]{64}", expects="64 hex digits"),
}

PIN: dict[str, Field] = {
    "schema": _SCHEMA,
    "description": Field("text", "one line for people", default=""),
    "image": Field(
        "text",
        "container image, with @sha256:... once it is known",
        default="",
        pattern=r"|[A-Za-z0-9][A-Za-z0-9._/:@-]*",
        expects="an image reference",
    ),
    "home": Field("path", "where tt-metal lies inside the image", default=""),
    "wheel": Field("table", "the wheel that the image's engine comes from", fields=WHEEL),
    "tt_metal": _commit("tt-metal commit"),
    "vllm": Field("text", "vLLM version or commit", default="", pattern="|[0-9a-zA-Z.+_-]+", expects="a version"),
    "plugin": _commit("vllm-tt-plugin commit"),
    "cache_writes_by_rename": Field(
        "bool",
        "whether the engine writes tensor files beside their place and renames them, so that hard links are safe",
        default=False,
    ),
    "extra-flags": Field("kinds", 'flags beyond vLLM\'s own, with their kind; "tt.NAME" for a plugin option'),
}

MODEL: dict[str, Field] = {
    "hf": Field(
        "text",
        "Hugging Face id",
        default="",
        pattern=r"|[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*",
        expects="an id such as Qwen/Qwen3.6-27B",
    ),
    "path": Field("path", "folder of the checkpoint on the card host; relative to this file", default=""),
    "revision": Field("text", "revision of the checkpoint", pattern=r"[A-Za-z0-9._/-]+", expects="a revision"),
    "served_name": Field("text", "the name that clients use; the entry's own by default", pattern=r"\S+"),
    "cache_gb": Field("number", "what its tensor cache takes, GB of 1e9 bytes", required=True),
    "env": Field("env", "environment that the model requires"),
    "weights_env": Field(
        "texts",
        "names of variables that change the bytes of its tensor cache",
        pattern=ENV_NAME,
        expects="names of environment variables",
    ),
}

FLAG_KINDS = tuple(KINDS)
