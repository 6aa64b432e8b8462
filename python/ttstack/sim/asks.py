"""Request bodies of /v1/completions, /v1/chat/completions and /tokenize to what is asked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.sim import fields, tokens
from ttstack.sim.errors import ApiError
from ttstack.sim.generate import Ask

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_MAX_TOKENS = 16  # of a completion without max_tokens, in vLLM as in OpenAI's API
_MAX_SEED = 1 << 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may ask for. ``enforced`` is False under the fault no-limit."""

    names: tuple[str, ...]
    max_model_len: int
    enforced: bool


@dataclass(frozen=True, slots=True)
class Call:
    """One completion that was asked for, and the form of its answer."""

    ask: Ask
    chat: bool
    model: str
    stream: bool
    include_usage: bool
    continuous_usage: bool


def _ids(value: list[object]) -> list[int]:
    for token in value:
        if type(token) is not int:
            raise fields.wrong("prompt", "a valid string or list of integers")
        if not 0 <= token < tokens.VOCABULARY:
            raise ApiError(400, f"Token id {token} is out of vocabulary", param="prompt")
    return [token for token in value if isinstance(token, int)]


def _prompt(value: object) -> list[int]:
    """Tokens of a prompt: text, token ids, or a list with one of these."""
    if value is None:
        raise ApiError(400, "Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    if isinstance(value, list) and value and isinstance(value[0], (str, list)):
        if len(value) > 1:
            raise ApiError(400, "This engine answers one prompt per request.", param="prompt")
        value = value[0]
    ids = _ids(value) if isinstance(value, list) else tokens.encode(fields.text(value, "prompt"))
    if not ids:
        raise ApiError(400, "The decoder prompt cannot be empty", param="prompt")
    return ids


def _content(value: object) -> str:
    """Text of a message: a string, or a list of text parts."""
    if value is None:
        return ""
    if not isinstance(value, list):
        return fields.text(value, "messages")
    parts = []
    for part in value:
        if not isinstance(part, dict) or part.get("type") != "text":
            raise ApiError(400, "Only text parts are supported by this model.", param="messages")
        parts.append(fields.text(part.get("text"), "messages"))
    return "\n".join(parts)


def _messages(value: object) -> list[tuple[str, str]]:
    if not isinstance(value, list) or not value:
        raise fields.wrong("messages", "a list with at least one message")
    pairs = []
    for message in value:
        if not isinstance(message, dict):
            raise fields.wrong("messages", "a valid dictionary")
        pairs.append((fields.text(message.get("role"), "messages"), _content(message.get("content"))))
    return pairs


def _refuse_unsupported(body: Mapping[str, object]) -> None:
    for name, idle in (
        ("logprobs", (None, False)),
        ("top_logprobs", (None,)),
        ("prompt_logprobs", (None,)),
        ("echo", (None, False)),
        ("suffix", (None, "")),
        ("use_beam_search", (None, False)),
        ("n", (None, 1)),
        ("best_of", (None, 1)),
    ):
        value = body.get(name)
        # 0 and False are equal, yet logprobs = 0 asks for the log probability of the token itself.
        if not any(value is known or (type(value) is type(known) and value == known) for known in idle):
            raise ApiError(400, f"{name} is not supported by this engine.", param=name)


def _salt(body: Mapping[str, object]) -> bytes:
    temperature = fields.number(body, "temperature", 1.0)
    seed = body.get("seed")
    if seed is not None and (type(seed) is not int or not -_MAX_SEED < seed < _MAX_SEED):
        raise fields.wrong("seed", "a valid 64-bit integer")
    if temperature == 0:
        return b""
    return os.urandom(16) if seed is None else repr((seed, temperature)).encode()


def _stream(body: Mapping[str, object]) -> tuple[bool, bool, bool]:
    """Whether to stream, with the usage at the end, with the usage in every event."""
    stream, options = fields.switch(body, "stream"), body.get("stream_options")
    if options is None:
        return stream, False, False
    if not isinstance(options, dict):
        raise fields.wrong("stream_options", "a valid dictionary")
    if not stream:
        raise ApiError(400, "Stream options can only be defined when `stream=True`.", param="stream_options")
    usage = fields.switch(options, "include_usage")
    return stream, usage, usage and fields.switch(options, "continuous_usage_stats")


def model_of(body: Mapping[str, object], names: tuple[str, ...]) -> str:
    """Name of the model that is asked for; none means the first. Raises ApiError."""
    value = body.get("model")
    if value is None:
        return names[0]
    name = fields.text(value, "model")
    if name not in names:
        raise ApiError(404, f"The model `{name}` does not exist.", kind="NotFoundError", param="model")
    return name


def _lengths(body: Mapping[str, object], prompt: int, limits: Limits, *, chat: bool) -> tuple[int, int]:
    """Largest and smallest length of the answer, tokens."""
    asked = fields.whole(body, "max_completion_tokens", None, 1) if chat else None
    if asked is None:
        asked = fields.whole(body, "max_tokens", None if chat else _DEFAULT_MAX_TOKENS, 1)
    room = limits.max_model_len - prompt
    if limits.enforced and (room < 1 or (asked is not None and asked > room)):
        wanted = asked or 1
        raise ApiError(
            400,
            f"This model's maximum context length is {limits.max_model_len} tokens. However, you requested {wanted} "
            f"output tokens and your prompt contains at least {prompt} input tokens, for a total of at least "
            f"{prompt + wanted} tokens. Please reduce the length of the input prompt or the number of requested "
            "output tokens.",
        )
    least = fields.whole(body, "min_tokens", 0, 0) or 0
    most = asked if asked is not None else max(room, _DEFAULT_MAX_TOKENS)
    if least > most:
        raise ApiError(
            400, f"min_tokens must be less than or equal to max_tokens={most}, got {least}.", param="min_tokens"
        )
    return most, least


def call(body: Mapping[str, object], limits: Limits, *, chat: bool) -> Call:
    """Read the body of a completion. Raises ApiError."""
    model = model_of(body, limits.names)
    _refuse_unsupported(body)
    if chat:
        messages = _messages(body.get("messages"))
        prompt, seen = tokens.chat(messages), messages[-1][1]
    else:
        prompt = _prompt(body.get("prompt"))
        seen = tokens.decode(prompt)
    most, least = _lengths(body, len(prompt), limits, chat=chat)
    stream, usage, continuous = _stream(body)
    ask = Ask(
        prompt=tuple(prompt),
        text=seen,
        max_tokens=most,
        min_tokens=least,
        ignore_eos=fields.switch(body, "ignore_eos"),
        stop=fields.stop(body),
        salt=_salt(body),
    )
    return Call(ask, chat, model, stream, usage, continuous)


def tokenize(body: Mapping[str, object], names: tuple[str, ...]) -> list[int]:
    """Tokens of the body of /tokenize: ``prompt`` or ``messages``. Raises ApiError."""
    model_of(body, names)
    if "messages" in body:
        return tokens.chat(_messages(body["messages"]))
    return tokens.encode(fields.text(body.get("prompt"), "prompt"))


def detokenize(body: Mapping[str, object], names: tuple[str, ...]) -> list[int]:
    """Tokens of the body of /detokenize. Raises ApiError."""
    model_of(body, names)
    value = body.get("tokens")
    if not isinstance(value, list):
        raise fields.wrong("tokens", "a valid list")
    return _ids(value)
