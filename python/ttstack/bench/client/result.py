"""Requests that are over: what their streams say, and whether they may be used."""

from __future__ import annotations

import http
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ttstack.bench.client.reading import DETAIL, Reading, VoidError
from ttstack.bench.client.sse import events
from ttstack.bench.client.types import Result, Void, VoidReason

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ttstack.bench.client.types import Ask, Usage
    from ttstack.bench.client.wire import Wire

_SLICE = 64  # events between two places where a reader may be left alone for a while


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
    told = Reading()
    void = taken.void
    if taken.wire is not None:
        try:
            _check_head(taken.wire)
            yield from _read(taken.wire, told, began)
            _check(taken, told)
        except VoidError as error:
            void = error.void
    told.catch_up()
    return _result(taken, told, void, began, secret)


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
        said = " ".join(wire.body().data[:DETAIL].decode("utf-8", "replace").split())
        raise VoidError(VoidReason.STATUS, f"status {head.status} {head.phrase}: {said}")
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise VoidError(VoidReason.NOT_A_STREAM, f"the answer is {kind or 'of no type'}, not text/event-stream")


def _read(wire: Wire, reading: Reading, began: float) -> Iterator[None]:
    """Read all events, each with the time of the read that made it whole. Raises VoidError."""
    body = wire.body()
    reach, times, read = body.reach, body.times, 0
    for number, event in enumerate(events(body.data)):
        if number % _SLICE == _SLICE - 1:
            yield
        while reach[read] < event.end:
            read += 1
        reading.take(event, times[read] - began)


def _check(taken: Taken, told: Reading) -> None:
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


def _result(taken: Taken, told: Reading, void: Void | None, began: float, secret: str) -> Result:
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
        chunks=tuple(told.chunks),
        end_at=wire.stamps[-1] - began if wire is not None and wire.stamps else None,
        text="".join(told.text),
        reasoning="".join(told.reasoning),
        finish_reason=told.finish_reason,
        usage=told.usage,
        server=told.server,
        resent=taken.resent,
    )
