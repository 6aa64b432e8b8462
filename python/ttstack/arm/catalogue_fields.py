"""What a pin and an entry of models.toml may hold: tables as that of ``ttstack.arm.fields``."""

from __future__ import annotations

from ttstack.arm.fields import ENV_NAME, SCHEMA, Field, description


def _commit(doc: str, example: str) -> Field:
    return Field(
        "text",
        doc,
        default="",
        pattern="|[0-9a-f]{7,40}",
        expects="a commit (7 to 40 hex digits)",
        example=f'"{example}"',
    )


WHEEL: dict[str, Field] = {
    "name": Field(
        "text",
        "distribution name",
        required=True,
        pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*",
        expects="a name",
        example='"ttnn"',
    ),
    "version": Field(
        "text", "version", required=True, pattern=r"[0-9][0-9A-Za-z.+_-]*", expects="a version", example='"0.81.1"'
    ),
    "python": Field(
        "text", "Python tag", required=True, pattern="cp3[0-9]+", expects="a tag such as cp312", example='"cp312"'
    ),
    "sha256": Field(
        "text",
        "hash of the file",
        required=True,
        pattern="[0-9a-f]{64}",
        expects="64 hex digits",
        example='"cc6df66162c8b5f5a5eb7347fe687b6095bf57bd64f9ba1be3d9b7f42e01d64f"',
    ),
}

PIN: dict[str, Field] = {
    "schema": SCHEMA,
    "description": description("ttnn 0.81.1 and vLLM 0.25.1"),
    "image": Field(
        "text",
        "container image, with @sha256:... once it is known",
        default="",
        pattern=r"|[A-Za-z0-9][A-Za-z0-9._/:@-]*",
        expects="an image reference",
        example='"tt-serve:current"',
    ),
    "home": Field(
        "path",
        "where tt-metal lies inside the image; absolute, required with an image",
        default="",
        example='"/opt/tt-metal"',
    ),
    "wheel": Field("table", "the wheel that the image's engine comes from", fields=WHEEL),
    "tt_metal": _commit("tt-metal commit", "0123456789abcdef0123456789abcdef01234567"),
    "vllm": Field(
        "text",
        "vLLM version or commit",
        default="",
        pattern="|[0-9a-zA-Z.+_-]+",
        expects="a version",
        example='"0.25.1"',
    ),
    "plugin": _commit("vllm-tt-plugin commit", "e3fc8494"),
    "cache_writes_by_rename": Field(
        "bool",
        "whether the engine writes tensor files beside their place and renames them, so that hard links are safe",
        default=False,
        example="true",
    ),
    "extra-flags": Field(
        "kinds",
        'flags beyond vLLM\'s own, with their kind; "tt.NAME" for a plugin option',
        example='{ new-flag = "int", "tt.new_option" = "str" }',
    ),
}

MODEL: dict[str, Field] = {
    "hf": Field(
        "text",
        "Hugging Face id",
        default="",
        pattern=r"|[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*",
        expects="an id such as Qwen/Qwen3.6-27B",
        example='"Qwen/Qwen3.6-27B"',
    ),
    "path": Field(
        "path",
        "folder of the checkpoint on the card host; relative to this file",
        default="",
        example='"/var/lib/tenstorrent/models/Qwen3.6-27B"',
    ),
    "revision": Field(
        "text",
        "revision of the checkpoint",
        pattern=r"[A-Za-z0-9._/-]+",
        expects="a revision",
        otherwise="local, with a path; else required",
        example='"local"',
    ),
    "served_name": Field(
        "text",
        "the name that clients use",
        pattern=r"\S+",
        otherwise="the entry's own name",
        example='"qwen3.6-27b"',
    ),
    "cache_gb": Field("number", "what its tensor cache takes, GB of 1e9 bytes", required=True, example="28.7"),
    "env": Field("env", "environment that the model requires", example='{ QWEN36_GDN_BF4 = "1" }'),
    "weights_env": Field(
        "texts",
        "names of variables that change the bytes of its tensor cache",
        pattern=ENV_NAME,
        expects="names of environment variables",
        example='["QWEN36_LM_HEAD_BF4", "QWEN36_MLP_DOWN_BF4", "QWEN36_GDN_BF4"]',
    ),
    "weights_env_in_name": Field(
        "texts",
        "those of `weights_env` whose every value goes into the names of the files that it changes, so that a file of "
        "one name has the same bytes whatever they are set to; a cache may then begin with the files of another that "
        "differs in these alone",
        pattern=ENV_NAME,
        expects="names of environment variables",
        example='["QWEN36_LM_HEAD_BF4"]',
    ),
}
