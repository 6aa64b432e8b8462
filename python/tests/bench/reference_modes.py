"""What the reference server does in each mode, and what the client must make of it: the table of docs/reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import reference_streams as streams
from reference_streams import ABORT, CLOSE, DONE, LAST, Asked, Step, event, frame, head, pace, tail, token, tokens

from ttstack.bench.client.types import VoidReason as Void

if TYPE_CHECKING:
    from collections.abc import Callable

_MEGABYTE = "x" * (1 << 20)


class Mode(NamedTuple):
    """One mode. ``void`` is None where the client must measure the true values."""

    does: str  # what the server does, for people
    steps: Callable[[Asked], list[Step]]
    void: Void | None = None
    says: str = "TTFT, TPOT and each chunk's time are the true ones"
    chat: bool = False  # only there
    once: bool = False  # a connection's second request is answered by closing it


def usage_in_last(asked: Asked) -> list[Step]:
    """The usage comes with the finish reason, in a chunk of its own at the end; nothing before it is counted."""
    blind = replace(asked, counts=False)
    plain = [token(replace(blind, tokens=asked.tokens + 1), number) for number in range(asked.tokens)]
    last = {**streams.chunk(blind, "", asked.tokens, "length"), "usage": streams.usage(asked, asked.tokens)}
    return [head(), *plain, Step(asked.end + 0.01, frame(event(last)) + frame(event(DONE)) + LAST)]


def crlf(asked: Asked) -> list[Step]:
    """Lines end in CR LF, with comments, ids and event names; each event comes in three pieces, cut within lines."""
    steps = []
    for number in range(asked.tokens):
        step = token(asked, number)
        content = b": hm\nid: 7\nevent: message\n" + step.data.split(b"\r\n", 1)[1][:-2]
        data = frame(content.replace(b"\n", b"\r\n"))
        third = len(data) // 3
        at = step.after - asked.pace.each / 2
        steps += [Step(at, data[:third]), Step(at, data[third : 2 * third]), step._replace(data=data[2 * third :])]
    return [head(), *steps, *tail(asked)]


def split_end(asked: Asked) -> list[Step]:
    """The LF of an event's last CR LF comes late: the CR has ended the event before."""
    steps = []
    for number in range(asked.tokens):
        step = token(asked, number)
        data = frame(step.data.split(b"\r\n", 1)[1][:-2].replace(b"\n", b"\r\n"))
        steps += [step._replace(data=data[:-3]), Step(step.after + asked.pace.each / 2, data[-3:])]
    late = tail(asked)[0]
    return [head(), *steps, late._replace(after=late.after + asked.pace.each)]


def pairs(asked: Asked) -> list[Step]:
    """Two events in one write."""
    found = tokens(asked)
    steps = []
    for begin in range(0, len(found), 2):
        two = found[begin : begin + 2]
        steps.append(two[-1]._replace(data=b"".join(step.data for step in two), tokens=len(two)))
    return [head(), *steps, *tail(asked)]


def split_character(asked: Asked) -> list[Step]:
    """A character's two bytes come in two writes and in two chunks of HTTP."""
    steps = []
    for number in range(asked.tokens):
        step = token(asked, number)
        content = step.data.split(b"\r\n", 1)[1][:-2]
        inside = content.index("ö".encode()) + 1
        early = Step(step.after - asked.pace.each / 2, frame(content[:inside]))
        steps += [early, step._replace(data=frame(content[inside:]))]
    return [head(), *steps, *tail(asked)]


def slow_head(asked: Asked) -> list[Step]:
    """An interim answer, then the head byte by byte."""
    data, share = head().data, asked.pace.first / 2 / len(head().data)
    drops = [Step(number * share, bytes([value])) for number, value in enumerate(data)]
    return [Step(0, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), *drops, *tokens(asked), *tail(asked)]


def large(asked: Asked) -> list[Step]:
    return [head(), *(token(asked, number, _MEGABYTE) for number in range(2)), *tokens(asked)[2:], *tail(asked)]


def until_close(asked: Asked) -> list[Step]:
    """No length and no chunks: the end of the connection is the end of the answer."""
    begin = Step(0, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    body = [step._replace(data=step.data.split(b"\r\n", 1)[1][:-2]) for step in tokens(asked)]
    ends = streams.event({"choices": [], "usage": streams.usage(asked, asked.tokens)}) + event(DONE)
    return [begin, *body, Step(asked.end, ends), Step(asked.end, CLOSE)]


def half(asked: Asked, *more: bytes) -> list[Step]:
    """Break off in the middle of the answer, after some more bytes."""
    middle = asked.tokens // 2
    return [head(), *tokens(asked)[:middle], *(Step(asked.at(middle), data) for data in more)]


def whole(status: str, body: bytes = b"{}", *more: str) -> Callable[[Asked], list[Step]]:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *more, "", ""]
    return lambda _: [Step(0, "\r\n".join(lines).encode() + body)]


def bare(data: bytes) -> Callable[[Asked], list[Step]]:
    return lambda _: [Step(0, data), Step(0, CLOSE)]


def with_tail(**changed: object) -> Callable[[Asked], list[Step]]:
    return lambda asked: [head(), *tokens(asked), *tail(asked, **changed)]


def finished(asked: Asked, reason: str | None) -> list[Step]:
    last = frame(event(streams.chunk(asked, streams.WORD, asked.tokens, reason)))
    return [head(), *tokens(asked)[:-1], Step(asked.end, last, 1, shown=True), *tail(asked)]


def fewer(asked: Asked) -> list[Step]:
    short = replace(asked, tokens=asked.tokens - 1)
    return [head(), *tokens(short), *tail(short)]


def extra(asked: Asked, data: bytes) -> list[Step]:
    """One more event in the middle."""
    middle = asked.tokens // 2
    return [head(), *tokens(asked)[:middle], Step(asked.at(middle), frame(data)), *tokens(asked)[middle:], *tail(asked)]


_ERROR = {"error": {"message": "EngineCore encountered an issue.", "code": 500}}
_END = frame(event(DONE)) + LAST
_COUNTED_AHEAD = event({"choices": [{"index": 0, "text": ""}], "usage": {"prompt_tokens": 9, "completion_tokens": 999}})

MODES = {
    "pace": Mode("one token an event, at a known pace", pace),
    "role": Mode("sends an event with the role, or an empty text, at once", streams.role),
    "bundles": Mode("four tokens an event, counted (`continuous_usage_stats`)", streams.bundles),
    "blind_bundles": Mode(
        "four tokens an event, not counted",
        streams.blind_bundles,
        says="TTFT and each chunk's time are true; TPOT takes the first chunk for one token, and says so: `tpot_exact` "
        "is false",
    ),
    "empty_text": Mode(
        "some tokens show no text, the first and the last among them; counted",
        streams.empty_text,
        says="TTFT is that of the first text, TPOT is true",
    ),
    "ids": Mode("tells the ids of the tokens; the first shows no text", streams.ids),
    "reasoning": Mode("half of the answer is reasoning, under two names", streams.reasoning, chat=True),
    "tools": Mode("answers with calls of a tool only", streams.tools, chat=True),
    "usage_in_last": Mode("tells the usage with the last event's finish reason, which comes late", usage_in_last),
    "crlf": Mode("ends lines in CR LF, with comments and ids, and writes each event in three pieces", crlf),
    "split_end": Mode("writes the last LF of each event late: the CR has ended the event before", split_end),
    "pairs": Mode("writes two events at a time", pairs),
    "split_character": Mode("cuts a character in two, in two writes and two chunks of HTTP", split_character),
    "slow_head": Mode("sends an interim answer, then the head byte by byte", slow_head),
    "large": Mode("sends events of 1 MB", large),
    "until_close": Mode("gives no length: the answer ends with the connection", until_close),
    "closes": Mode(
        "closes a kept connection after each answer and does not say so", lambda a: [*pace(a), Step(a.end, CLOSE)]
    ),
    "once": Mode("keeps a connection, and closes it when the next request comes", pace, once=True),
    "says_close": Mode(
        "says `Connection: close`, and closes",
        lambda a: [head(0, "Connection: close"), *pace(a)[1:], Step(a.end, CLOSE)],
    ),
    "error": Mode(
        "sends an error in the middle, then [DONE]", lambda a: half(a, frame(event(_ERROR)) + _END), Void.SERVER_ERROR
    ),
    "error_event": Mode(
        "sends `event: error` in the middle",
        lambda a: half(a, frame(b"event: error\ndata: {}\n\n") + _END),
        Void.SERVER_ERROR,
    ),
    "error_object": Mode(
        'sends `"object": "error"` in the middle',
        lambda a: half(a, frame(event({"object": "error"})) + _END),
        Void.SERVER_ERROR,
    ),
    "aborts": Mode("ends with finish_reason `abort`", lambda a: finished(a, "abort"), Void.SERVER_ERROR),
    "drop": Mode("resets the connection in the middle", lambda a: half(a, ABORT), Void.DROPPED),
    "hangs_up": Mode("closes the connection in the middle", lambda a: half(a, CLOSE), Void.DROPPED),
    "mute": Mode("closes the connection without an answer", lambda _: [Step(0, CLOSE)], Void.DROPPED),
    "early_end": Mode("ends the answer properly, but in the middle", lambda a: half(a, LAST), Void.NO_DONE),
    "no_done": Mode("sends everything but [DONE]", lambda a: [*pace(a)[:-1], Step(a.end, LAST)], Void.NO_DONE),
    "goes_on": Mode("goes on after [DONE]", lambda a: extra(a, event(DONE)), Void.BAD_EVENT),
    "no_usage": Mode(
        "tells no usage", lambda a: [*pace(replace(a, counts=False))[:-1], Step(a.end, _END)], Void.NO_USAGE
    ),
    "not_json": Mode("sends an event that is not JSON", lambda a: extra(a, b"data: {half\n\n"), Void.BAD_EVENT),
    "not_a_number": Mode("sends NaN", lambda a: extra(a, b'data: {"a": NaN}\n\n'), Void.BAD_EVENT),
    "not_utf8": Mode(
        "sends an event that is not UTF-8", lambda a: extra(a, b'data: {"a": "\xff"}\n\n'), Void.BAD_EVENT
    ),
    "not_an_object": Mode("sends a list as an event", lambda a: extra(a, b"data: []\n\n"), Void.BAD_EVENT),
    "odd_choices": Mode("sends two choices", lambda a: extra(a, event({"choices": [{}, {}]})), Void.BAD_EVENT),
    "odd_text": Mode(
        "sends a number as text", lambda a: extra(a, event({"choices": [{"index": 0, "text": 1}]})), Void.BAD_EVENT
    ),
    "odd_usage": Mode("sends a usage without counts", lambda a: extra(a, event({"usage": {"a": 1}})), Void.BAD_EVENT),
    "no_tokens": Mode("tells of tokens, but shows none", lambda a: [head(), *tail(a)], Void.NO_TOKENS),
    "counts_back": Mode("counts backwards", lambda a: [head(), *tokens(a), *tail(a, a.tokens - 1)], Void.MISCOUNT),
    "counts_ahead": Mode(
        "counts more in its chunks than in its usage", lambda a: extra(a, _COUNTED_AHEAD), Void.MISCOUNT
    ),
    "more_ids": Mode("tells more ids than tokens", lambda a: streams.ids(a, 2), Void.MISCOUNT),
    "undercounts": Mode(
        "tells fewer tokens than it sent",
        lambda a: [head(), *tokens(replace(a, counts=False)), *tail(a, 1)],
        Void.MISCOUNT,
    ),
    "other_prompt": Mode("counts another length of the prompt", with_tail(prompt_tokens=5), Void.PROMPT_LENGTH),
    "fewer": Mode("makes one token fewer than forced", fewer, Void.OUTPUT_LENGTH),
    "stops": Mode("makes all tokens, but says `stop`", lambda a: finished(a, "stop"), Void.FINISH_REASON),
    "no_reason": Mode("tells no finish_reason", lambda a: finished(a, None), Void.FINISH_REASON),
    "cached": Mode(
        "took part of the prompt from a cache", with_tail(prompt_tokens_details={"cached_tokens": 4}), Void.CACHE_HIT
    ),
    "refuses": Mode("answers 422", whole("422 Unprocessable", b'{"error": "no"}'), Void.STATUS),
    "redirects": Mode("redirects", whole("307 Temporary Redirect", b"", "Location: /other"), Void.REDIRECT),
    "compressed": Mode(
        "compresses the answer", whole("200 OK", b"\x1f\x8b", "Content-Encoding: gzip"), Void.COMPRESSED
    ),
    "compressed_transfer": Mode(
        "compresses the transfer",
        bare(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\x1f"),
        Void.COMPRESSED,
    ),
    "document": Mode("answers with a document instead of a stream", whole("200 OK"), Void.NOT_A_STREAM),
    "http2": Mode("speaks only HTTP/2", bare(b"\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64"), Void.HTTP2),
    "not_http": Mode("speaks another protocol", bare(b"SSH-2.0-OpenSSH_9\r\n"), Void.NOT_HTTP),
    "bad_chunk": Mode("breaks HTTP's framing", lambda a: half(a, b"zz\r\n\r\n"), Void.NOT_HTTP),
    "bad_length": Mode(
        "gives a length that is no number",
        bare(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1, 2\r\n\r\n"),
        Void.NOT_HTTP,
    ),
    "silent": Mode("stays silent in the middle", half, Void.TIMEOUT),
}
