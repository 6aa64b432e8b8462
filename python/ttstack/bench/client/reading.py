"""What the events of /v1/completions and /v1/chat/completions say, one after the other."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ttstack.bench.client.likeness import likeness_of
from ttstack.bench.client.types import Chunk, Usage, Void, VoidReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.bench.client.likeness import Likeness
    from ttstack.bench.client.sse import Event

DETAIL = 300  # characters of a server's words
_SHOWING = ("content", "reasoning", "reasoning_content", "tool_calls", "function_call", "refusal")
_REASONING = ("reasoning", "reasoning_content")
_DONE = b"[DONE]"


class VoidError(Exception):
    """A stream that may not be used."""

    def __init__(self, reason: VoidReason, detail: str) -> None:
        super().__init__(detail)
        self.void = Void(reason, detail)


@dataclass(slots=True)
class Reading:
    """What the stream said so far."""

    chunks: list[Chunk] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage | None = None
    total: int = 0  # tokens that chunks were said to bring
    blind: bool = False  # a chunk came without a count
    server: Mapping[str, Any] = field(default_factory=dict)
    done: bool = False
    like: Likeness | None = None  # what the next event probably is like

    def take(self, event: Event, at: float) -> None:
        """Take one event into account. Raises VoidError."""
        like = self.like
        if like is not None and event.kind == b"message" and not self.done:
            text = like.text_of(event.data, self.total + 1)
            if text is not None:
                (self.reasoning if like.reasoning else self.text).append(text)
                self.chunks.append(Chunk(at, 1 if like.adds else None, shown=True))
                self.total += bool(like.adds)
                return
        self._take_any(event, at)

    def _take_any(self, event: Event, at: float) -> None:
        if self.done:
            raise VoidError(VoidReason.BAD_EVENT, f"it goes on after [DONE]: {_shown(event.data)}")
        if event.data == _DONE:
            self.done = True
            return
        self.catch_up()
        _take(self, at, event, _parsed(event.data))

    def catch_up(self) -> None:
        """Bring the usage up to what events told that were only compared."""
        if self.like is not None and self.like.adds and self.usage is not None:
            self.usage = replace(self.usage, completion=self.total)
        self.like = None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise VoidError(VoidReason.BAD_EVENT, f"an event is not UTF-8: {_shown(data)}") from error
    except (ValueError, RecursionError) as error:
        raise VoidError(VoidReason.BAD_EVENT, f"an event is not JSON: {_shown(data)}") from error
    if not isinstance(value, dict):
        raise VoidError(VoidReason.BAD_EVENT, f"an event is no object: {_shown(data)}")
    return value


def _shown(data: bytes) -> str:
    return repr(data[:120].decode("utf-8", "replace"))


def _take(told: Reading, at: float, event: Event, body: dict[str, Any]) -> None:
    if body.get("error") or event.kind == b"error" or body.get("object") == "error":
        raise VoidError(VoidReason.SERVER_ERROR, f"an error came inside the stream: {json.dumps(body)[:DETAIL]}")
    before = told.usage
    if body.get("usage"):
        told.usage = _usage(body["usage"])
        if before is not None and told.usage.completion < before.completion:
            raise VoidError(VoidReason.MISCOUNT, "the count of tokens went back")
    told.server = body.get("timings") or body.get("metrics") or told.server
    choices = body.get("choices")
    if not choices:
        return
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, dict):
        raise VoidError(VoidReason.BAD_EVENT, f"choices is no list of one: {str(choices)[:120]}")
    finish = choice.get("finish_reason")
    if finish in {"error", "abort"}:
        raise VoidError(VoidReason.SERVER_ERROR, f"the stream's finish_reason is {finish}")
    told.finish_reason = finish or told.finish_reason
    ids = choice.get("token_ids")
    shown = _pieces(told, choice) or bool(ids)
    tokens = len(ids) if isinstance(ids, list) else _grown(told, counted=bool(body.get("usage")))
    if shown or tokens:
        told.chunks.append(Chunk(at, tokens, shown))
        told.total += tokens or 0
        told.blind = told.blind or tokens is None
    if shown and (told.blind or tokens is not None) and not (told.blind and body.get("usage")):
        told.like = likeness_of(event.data, body, choice)


def _grown(told: Reading, *, counted: bool) -> int | None:
    """Count the tokens since the last chunk, when every event so far says how many there are by then.

    Some servers put the usage of the whole answer into the last event with a choice; that one brings nothing.
    """
    return told.usage.completion - told.total if counted and told.usage is not None and not told.blind else None


def _pieces(told: Reading, choice: dict[str, Any]) -> bool:
    """Keep the text of a chunk; say whether it shows anything of the answer."""
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return _piece(told.text, choice.get("text"))
    shown = _piece(told.text, delta.get("content"))
    for name in _REASONING:  # servers that know both names send the same text twice
        if _piece(told.reasoning, delta.get(name)):
            shown = True
            break
    return shown or any(delta.get(name) for name in _SHOWING)


def _piece(pieces: list[str], text: object) -> bool:
    if not text:
        return False
    if not isinstance(text, str):
        raise VoidError(VoidReason.BAD_EVENT, f"a piece of text is none: {str(text)[:120]}")
    pieces.append(text)
    return True


def _usage(table: object) -> Usage:
    """Read the server's counts. Raises VoidError."""
    if isinstance(table, dict):
        prompt, completion = table.get("prompt_tokens"), table.get("completion_tokens")
        details = table.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        if type(prompt) is int and type(completion) is int:
            return Usage(prompt, completion, cached if type(cached) is int else None)
    raise VoidError(VoidReason.BAD_EVENT, f"usage has no counts: {str(table)[:120]}")
