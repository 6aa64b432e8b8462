"""Asks to the bytes that are sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Api
from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.bench.client.endpoint import Endpoint
    from ttstack.bench.client.types import Ask


def request_bytes(
    endpoint: Endpoint, method: str, path: str, body: Mapping[str, object] | None, *, keep: bool = True
) -> bytes:
    """Write a request, with its body as JSON. Raises BenchError for what JSON cannot hold."""
    lines = [
        f"{method} {endpoint.prefix}{path} HTTP/1.1",
        f"Host: {endpoint.authority}",
        "User-Agent: ttx",
        "Accept: text/event-stream, application/json",
        "Accept-Encoding: identity",
        f"Connection: {'keep-alive' if keep else 'close'}",
    ]
    if endpoint.token:
        lines.append(f"Authorization: Bearer {endpoint.token}")
    data = b""
    if body is not None:
        data = _json(body)
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + data


def _json(body: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError) as error:
        raise BenchError(f"the request cannot be written as JSON: {error}", reason="request") from error


def ask_bytes(endpoint: Endpoint, ask: Ask) -> bytes:
    """Write the request of an ask. Raises BenchError for a prompt that its API does not take."""
    return request_bytes(endpoint, "POST", ask.api.value, body_of(ask))


def body_of(ask: Ask) -> dict[str, object]:
    """Make the body: streamed, with usage, at temperature 0 unless ``extra`` says otherwise."""
    options = {"include_usage": True, **({"continuous_usage_stats": True} if ask.counts else {})}
    body: dict[str, object] = {"model": ask.model}
    if ask.api is Api.CHAT:
        body["messages"] = _messages(ask)
    else:
        body["prompt"] = _prompt(ask)
    body.update(max_tokens=ask.max_tokens, temperature=0, stream=True, stream_options=options)
    if ask.forced:
        body.update(min_tokens=ask.max_tokens, ignore_eos=True)
    if ask.token_ids:
        body["return_token_ids"] = True
    return {**body, **ask.extra}


def _messages(ask: Ask) -> list[object]:
    if isinstance(ask.prompt, str):
        return [{"role": "user", "content": ask.prompt}]
    messages: list[object] = [part for part in ask.prompt if not isinstance(part, int)]
    if not messages or len(messages) < len(ask.prompt):
        raise BenchError("chat takes text or messages, no token ids", reason="request")
    return messages


def _prompt(ask: Ask) -> object:
    if isinstance(ask.prompt, str):
        return ask.prompt
    ids = [part for part in ask.prompt if isinstance(part, int)]
    if not ids or len(ids) < len(ask.prompt):
        raise BenchError("a completion takes text or at least one token id", reason="request")
    return ids
