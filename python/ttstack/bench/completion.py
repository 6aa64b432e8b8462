"""vLLM's /v1/completions, whole and streamed, read into one shape."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ttstack.bench.client.types import VoidReason
from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.bench.client.types import Ask
    from ttstack.bench.http import Client

PATH = "/v1/completions"
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Usage:
    """The server's own count of tokens."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished completion. Times are seconds since the request was sent."""

    text: str
    finish_reason: str
    usage: Usage
    seconds: float
    text_at: tuple[float, ...] = ()  # when each chunk that carries text arrived; empty when it was not streamed


def request(model: str, prompt: str | Sequence[int], max_tokens: int, **more: object) -> dict[str, object]:
    """Build a request at temperature 0. A prompt of token ids has an exact length whatever the tokenizer is."""
    return {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **more}


def forced(model: str, prompt: str | Sequence[int], tokens: int, **more: object) -> dict[str, object]:
    """Build a request whose answer has exactly ``tokens`` tokens, whatever the model would like."""
    return {**request(model, prompt, tokens), "min_tokens": tokens, "ignore_eos": True, **more}


def complete(client: Client, body: Mapping[str, object]) -> Completion:
    """Ask, and read the whole answer. Raises BenchError."""
    answer = client.post(PATH, body)
    if answer.status != http.client.OK:
        raise BenchError(f"{PATH} answered {answer.status}: {error_text(answer.body)}", reason="status")
    choice = first_choice(answer.body)
    return Completion(
        text=get(choice, "text", str),
        finish_reason=get(choice, "finish_reason", str),
        usage=usage_of(answer.body),
        seconds=answer.seconds,
    )


def complete_streamed(client: Client, ask: Ask) -> Completion:
    """Ask for a stream with usage, and put its text together. Raises BenchError when the stream is void."""
    result = client.measure(ask)
    if result.void is not None:
        late = result.void.reason is VoidReason.TIMEOUT and result.head_at is None
        raise BenchError(f"the stream is void: {result.void.detail}", reason="timeout" if late else "stream")
    assert result.usage is not None  # noqa: S101 - without usage it is void
    assert result.end_at is not None  # noqa: S101 - as above
    usage = Usage(result.usage.prompt, result.usage.completion)
    text_at = tuple(chunk.at for chunk in result.chunks if chunk.shown)
    return Completion(result.text, result.finish_reason, usage, result.end_at, text_at)


def first_choice(body: object) -> Mapping[str, Any]:
    """Return ``choices[0]``. Raises BenchError."""
    choices = get(body, "choices", list)
    if not choices or not isinstance(choices[0], dict):
        raise BenchError("the answer has no choices", reason="answer")
    return choices[0]


def usage_of(body: object) -> Usage:
    """Return the counts of an answer. Raises BenchError."""
    usage = get(body, "usage", dict)
    return Usage(get(usage, "prompt_tokens", int), get(usage, "completion_tokens", int))


def get(table: object, key: str, kind: type[Kind]) -> Kind:
    """Return an entry that must be there. Raises BenchError."""
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BenchError(f"the answer's {key!r} is missing or no {kind.__name__}: {str(table)[:200]}", reason="answer")
    return value


def error_text(body: object) -> str:
    """Return the server's own words for what went wrong, in OpenAI's shape or older vLLM's."""
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner.get("message") if isinstance(inner, dict) else inner or body.get("message") or body
    return str(body)[:300]
