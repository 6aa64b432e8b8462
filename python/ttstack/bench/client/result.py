"""What a stream of /v1/completions or /v1/chat/completions says, read when it is over; and whether it may be used."""

from __future__ import annotations

import http
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ttstack.bench.client.sse import events
from ttstack.bench.client.types import Chunk, Result, Usage, Void, VoidReason

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from ttstack.bench.client.types import Ask
    from ttstack.bench.client.wire import Wire

_SLICE = 64  # events between two places where a reader may be left alone for a while
_DETAIL = 300  # characters of a server's words
_SHOWING = ("content", "reasoning", "reasoning_content", "tool_calls", "function_call", "refusal")
_REASONING = ("reasoning", "reasoning_content")
_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that is over: when it was sent, over which wire."""

    ask: Ask
    number: int
    sent: float | None
    wire: Wire | None = None
    void: Void | None = None  # where there is no wire
    scheduled: float | None = None
    resent: int = 0


class VoidError(Exception):
    """A stream that may not be used."""

    def __init__(self, reason: VoidReason, detail: str) -> None:
        super().__init__(detail)
        self.void = Void(reason, detail)


def read_result(taken: Taken, began: float = 0.0, secret: str = "") -> Result:
    """Read a request that is over. ``began`` is zero of all times; ``secret`` is taken out of what the server said."""
    steps = read_in_steps(taken, began, secret)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("Result", end.value)


def read_in_steps(taken: Taken, began: float, secret: str) -> Generator[None, None, Result]:
    """Do the same in short steps; the result is the generator's value."""
    told = _Told()
    void = taken.void
    if taken.wire is not None:
        try:
            _check_head(taken.wire)
            yield from _read(taken.wire, told)
            _check(taken, told)
        except VoidError as error:
            void = error.void
    return _result(taken, told, void, began, secret)


@dataclass(slots=True)
class _Told:
    """What the stream said so far; times are the wire's."""

    chunks: list[Chunk] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish_reason: str = ""
    usage: Usage | None = None
    total: int = 0  # tokens that chunks were said to bring
    blind: bool = False  # a chunk came without a count
    server: Mapping[str, Any] = field(default_factory=dict)
    done: bool = False


def _check_head(wire: Wire) -> None:
    """Refuse what is no stream. Raises VoidError."""
    head = wire.head
    if head is None:
        fault = wire.fault or Void(VoidReason.DROPPED, "there is no answer")
        raise VoidError(fault.reason, fault.detail)
    if 300 <= head.status < 400:  # noqa: PLR2004 - the class of redirects
        where = head.headers.get("location", "nowhere")
        raise VoidError(VoidReason.REDIRECT, f"it redirects to {where}, which is never followed")
    coding = head.headers.get("content-encoding", "identity").lower()
    if coding != "identity":
        raise VoidError(VoidReason.COMPRESSED, f"the answer is compressed ({coding}), though that was not asked for")
    if wire.fault is not None and wire.fault.reason is VoidReason.COMPRESSED:
        raise VoidError(wire.fault.reason, wire.fault.detail)
    if head.status != http.HTTPStatus.OK:
        said = " ".join(wire.body().data[:_DETAIL].decode("utf-8", "replace").split())
        raise VoidError(VoidReason.STATUS, f"status {head.status} {head.phrase}: {said}")
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise VoidError(VoidReason.NOT_A_STREAM, f"the answer is {kind or 'of no type'}, not text/event-stream")


def _read(wire: Wire, told: _Told) -> Iterator[None]:
    """Read all events, each with the time of the read that made it whole. Raises VoidError."""
    body = wire.body()
    reach, times, read = body.reach, body.times, 0
    for number, event in enumerate(events(body.data)):
        if number % _SLICE == _SLICE - 1:
            yield
        while reach[read] < event.end:
            read += 1
        if told.done:
            raise VoidError(VoidReason.BAD_EVENT, f"it goes on after [DONE]: {_shown(event.data)}")
        if event.data == _DONE:
            told.done = True
        else:
            _take(told, times[read], event.kind, _parsed(event.data))


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


def _take(told: _Told, at: float, kind: bytes, body: dict[str, Any]) -> None:
    """Take one event into account. Raises VoidError."""
    if body.get("error") or kind == b"error" or body.get("object") == "error":
        raise VoidError(VoidReason.SERVER_ERROR, f"an error came inside the stream: {json.dumps(body)[:_DETAIL]}")
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


def _grown(told: _Told, *, counted: bool) -> int | None:
    """Count the tokens since the last chunk, when every event so far says how many there are by then.

    Some servers put the usage of the whole answer into the last event with a choice; that one brings nothing.
    """
    return told.usage.completion - told.total if counted and told.usage is not None and not told.blind else None


def _pieces(told: _Told, choice: dict[str, Any]) -> bool:
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


def _check(taken: Taken, told: _Told) -> None:
    """Hold the whole stream against what was asked. Raises VoidError."""
    if taken.wire is not None and taken.wire.fault is not None:
        raise VoidError(taken.wire.fault.reason, taken.wire.fault.detail)
    if not told.done:
        raise VoidError(VoidReason.NO_DONE, "it ended without [DONE]")
    usage = told.usage
    if usage is None:
        raise VoidError(VoidReason.NO_USAGE, "it has no usage: the number of tokens is not known")
    shown = sum(chunk.shown for chunk in told.chunks)
    if not shown:
        raise VoidError(VoidReason.NO_TOKENS, "no chunk has text, reasoning, a tool call or token ids")
    if told.total > usage.completion or shown > usage.completion:
        counted = f"{shown} chunks with tokens, {told.total} tokens counted in them"
        raise VoidError(VoidReason.MISCOUNT, f"usage says {usage.completion} tokens, but there are {counted}")
    _check_lengths(taken.ask, usage, told.finish_reason)


def _check_lengths(ask: Ask, usage: Usage, finish_reason: str) -> None:
    expected = ask.expected_prompt
    if expected is not None and usage.prompt != expected:
        detail = f"the prompt has {expected} tokens, the server counted {usage.prompt}"
        raise VoidError(VoidReason.PROMPT_LENGTH, detail)
    if usage.completion > ask.max_tokens or (ask.forced and usage.completion != ask.max_tokens):
        least = "" if ask.forced else "at most "
        detail = f"{least}{ask.max_tokens} tokens were asked for, the server made {usage.completion}"
        raise VoidError(VoidReason.OUTPUT_LENGTH, detail)
    if not finish_reason or (ask.forced and finish_reason != "length"):
        detail = f"finish_reason is {finish_reason or 'missing'}" + (", not length" if ask.forced else "")
        raise VoidError(VoidReason.FINISH_REASON, detail)
    if usage.cached and not ask.may_hit_cache:
        raise VoidError(VoidReason.CACHE_HIT, f"{usage.cached} tokens of the prompt came from a cache")


def _result(taken: Taken, told: _Told, void: Void | None, began: float, secret: str) -> Result:
    wire = taken.wire
    if void is not None and secret:
        void = Void(void.reason, void.detail.replace(secret, "***"))
    return Result(
        ask=taken.ask,
        number=taken.number,
        sent=None if taken.sent is None else taken.sent - began,
        scheduled=None if taken.scheduled is None else taken.scheduled - began,
        void=void,
        head_at=wire.head_at - began if wire is not None and wire.head is not None else None,
        chunks=tuple(Chunk(chunk.at - began, chunk.tokens, chunk.shown) for chunk in told.chunks),
        end_at=wire.stamps[-1] - began if wire is not None and wire.stamps else None,
        text="".join(told.text),
        reasoning="".join(told.reasoning),
        finish_reason=told.finish_reason,
        usage=told.usage,
        server=told.server,
        resent=taken.resent,
    )
