"""Answers of the reference server, as lists of what is written when."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import NamedTuple

CLOSE, ABORT = b"<close>", b"<abort>"
DONE = "[DONE]"
WORD = " wörd"


@dataclass(frozen=True)
class Pace:
    """Seconds from the whole request to its first token, and for each token after it."""

    first: float = 0.05
    each: float = 0.005


class Step(NamedTuple):
    """Something to write when so many seconds have gone since the request was whole."""

    after: float
    data: bytes
    tokens: int = 0  # that are there with its last byte
    shown: bool = False  # something of the answer can be seen then


@dataclass(frozen=True)
class Asked:
    """The request."""

    chat: bool
    tokens: int
    prompt: int
    counts: bool
    pace: Pace

    def at(self, token: int) -> float:
        return self.pace.first + token * self.pace.each

    @property
    def end(self) -> float:
        return self.at(self.tokens - 1)


def head(at: float = 0.0, *more: str, status: str = "200 OK", kind: str = "text/event-stream") -> Step:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Transfer-Encoding: chunked", *more, "", ""]
    return Step(at, "\r\n".join(lines).encode())


def frame(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value: object) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


LAST = b"0\r\n\r\n"


def usage(asked: Asked, made: int, **changed: object) -> dict[str, object]:
    table = {"prompt_tokens": asked.prompt, "completion_tokens": made, "total_tokens": asked.prompt + made}
    return {**table, "prompt_tokens_details": {"cached_tokens": 0}, **changed}


def chunk(asked: Asked, text: str, made: int, finish: str | None = None, **more: object) -> dict[str, object]:
    """One chunk as vLLM sends it; ``made`` tokens are there with it."""
    choice: dict[str, object] = {"index": 0, "finish_reason": finish}
    if asked.chat:
        choice["delta"] = {"content": text, **more}
    else:
        choice |= {"text": text, **more}
    kind = "chat.completion.chunk" if asked.chat else "text_completion"
    value = {"id": "r-1", "object": kind, "created": 1, "model": "reference", "choices": [choice]}
    return {**value, "usage": usage(asked, made)} if asked.counts else value


def token(asked: Asked, number: int, text: str = WORD, **more: object) -> Step:
    """One token, the ``number``-th from 0, at its time."""
    finish = "length" if number == asked.tokens - 1 else None
    data = frame(event(chunk(asked, text, number + 1, finish, **more)))
    return Step(asked.at(number), data, 1, shown=bool(text or more))


def tail(asked: Asked, made: int | None = None, **changed: object) -> list[Step]:
    """Usage, [DONE] and the end."""
    kind = "chat.completion.chunk" if asked.chat else "text_completion"
    told = {
        "id": "r-1",
        "object": kind,
        "choices": [],
        "usage": usage(asked, asked.tokens if made is None else made, **changed),
    }
    return [Step(asked.end, frame(event(told)) + frame(event(DONE)) + LAST)]


def tokens(asked: Asked) -> list[Step]:
    return [token(asked, number) for number in range(asked.tokens)]


def pace(asked: Asked) -> list[Step]:
    return [head(), *tokens(asked), *tail(asked)]


def role(asked: Asked) -> list[Step]:
    first = Step(0, frame(event(chunk(asked, "", 0, **({"role": "assistant"} if asked.chat else {})))))
    return [head(), first, *tokens(asked), *tail(asked)]


def bundles(asked: Asked, size: int = 4) -> list[Step]:
    """Several tokens a chunk, at the time of the last of them."""
    steps = []
    for begin in range(0, asked.tokens, size):
        end = min(begin + size, asked.tokens)
        last = token(asked, end - 1, WORD * (end - begin))
        steps.append(last._replace(tokens=end - begin))
    return [head(), *steps, *tail(asked)]


def blind_bundles(asked: Asked) -> list[Step]:
    return bundles(replace(asked, counts=False))


def empty_text(asked: Asked) -> list[Step]:
    """Each third token shows nothing: a part of a character; so do the first and the last."""
    shows = [number % 3 == 1 for number in range(asked.tokens - 1)] + [False]
    steps = [token(asked, number, WORD if show else "") for number, show in enumerate(shows)]
    return [head(), *steps, *tail(asked)]


def ids(asked: Asked, each: int = 1) -> list[Step]:
    """The first token shows no text, but its id is there; ``each``: how many ids are told for a token."""
    blind = replace(asked, counts=False)
    steps = []
    for number in range(asked.tokens):
        value = chunk(blind, "" if number == 0 else WORD, number + 1, None if number < asked.tokens - 1 else "length")
        value["choices"][0]["token_ids"] = [number] * each  # type: ignore[index]
        steps.append(Step(asked.at(number), frame(event(value)), 1, shown=True))
    return [head(), *steps, *tail(asked)]


def _delta(asked: Asked, number: int, delta: dict[str, object]) -> Step:
    value = chunk(asked, "", number + 1, "length" if number == asked.tokens - 1 else None)
    value["choices"][0]["delta"] = delta  # type: ignore[index]
    return Step(asked.at(number), frame(event(value)), 1, shown=True)


def reasoning(asked: Asked) -> list[Step]:
    """The first half of the answer is reasoning, under both of its names."""
    half = asked.tokens // 2
    steps = [_delta(asked, number, {"reasoning": "hm", "reasoning_content": "hm"}) for number in range(half)]
    return [head(), *steps, *tokens(asked)[half:], *tail(asked)]


def tools(asked: Asked) -> list[Step]:
    call = {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    return [head(), *(_delta(asked, number, call) for number in range(asked.tokens)), *tail(asked)]
