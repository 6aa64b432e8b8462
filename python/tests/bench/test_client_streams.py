"""Properties of reading: the bytes decide, never the reads that they came in."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_modes import MODES
from reference_streams import Asked, Pace, Step, frame

from ttstack.bench.client.likeness import likeness_of
from ttstack.bench.client.reading import Reading, VoidError
from ttstack.bench.client.result import Taken, read_result
from ttstack.bench.client.sse import Event, events
from ttstack.bench.client.types import Ask, Result, VoidReason
from ttstack.bench.client.wire import Wire, read_head

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ASK = Ask("m", "hello", 9, forced=False)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)


def taken(data: bytes, places: list[int]) -> Wire:
    """Read these bytes, cut at these places; the n-th read has the time n."""
    times = iter(range(len(places) + 2))
    wire = Wire(lambda: float(next(times)))
    for begin, end in pairwise([0, *places, len(data)]):
        room = wire.room()
        assert len(room) >= 16384
        room[: end - begin] = data[begin:end]
        del room
        if wire.took(end - begin):
            break
    wire.ended()
    return wire


def cut(data: bytes, places: list[int]) -> list[int]:
    """Give places inside the data, in order, with no empty read and none larger than there is room for."""
    inside = {place % len(data) for place in places} | set(range(0, len(data), 16000))
    return sorted(inside - {0})


def result_of(wire: Wire) -> Result:
    return read_result(Taken(ASK, 0, 0.0, wire))


def value(text: str, made: int | None, *, chat: bool, finish: str | None = None) -> dict[str, object]:
    piece: dict[str, object] = {"delta": {"content": text}} if chat else {"text": text}
    usage = None if made is None else {"prompt_tokens": 3, "completion_tokens": made, "total_tokens": made + 3}
    return {"id": "100%", "choices": [{"index": 0, **piece, "finish_reason": finish}], "note": "5%", "usage": usage}


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """Draw a whole answer: any texts, any line ends, comments, chunks of HTTP cut anywhere, with extensions."""
    texts, end = draw(st.lists(TEXT, min_size=1, max_size=6)), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    chat, counts, ascii_only = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    body = "\ufeff" if draw(st.booleans()) else ""
    last = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": len(texts)}}
    values = [value(text, number if counts else None, chat=chat) for number, text in enumerate(texts, 1)]
    for each in [*values, value("", len(texts) if counts else None, chat=chat, finish="stop"), last]:
        more = draw(st.sampled_from(["", ": a comment", "id: 3", "event: message", "retry"]))
        body += (more + end if more else "") + f"data: {json.dumps(each, ensure_ascii=ascii_only)}{end}{end}"
    data = f"{body}data: [DONE]{end}{end}".encode()
    places = sorted({0, len(data), *(place % len(data) for place in draw(st.lists(st.integers(0, 9999), max_size=8)))})
    pieces = [frame(data[begin:stop]) for begin, stop in pairwise(places)]
    extension = draw(st.sampled_from([b"", b";a=b", b" ", b";x"]))
    ending = draw(st.sampled_from([b"0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"000;a\r\n\r\n"]))
    return HEAD + b"".join(piece.replace(b"\r\n", extension + b"\r\n", 1) for piece in pieces) + ending, texts


@given(streams(), st.lists(st.integers(0, 99999), max_size=30))
def test_any_split_into_reads_gives_the_same_tokens_in_the_same_order(
    drawn: tuple[bytes, list[str]], places: list[int]
) -> None:
    data, texts = drawn
    whole, split = result_of(taken(data, [])), taken(data, cut(data, places))
    result = result_of(split)
    assert split.whole
    assert split.reusable
    assert result.text == whole.text == "".join(texts)
    assert [chunk[1:] for chunk in result.chunks] == [chunk[1:] for chunk in whole.chunks]
    assert (result.usage, result.void, result.finish_reason) == (whole.usage, whole.void, whole.finish_reason)
    assert whole.void is None or whole.void.reason is VoidReason.NO_TOKENS
    times = [chunk.at for chunk in result.chunks]
    assert times == sorted(times)


@given(streams(), st.lists(st.integers(0, 99999), max_size=30))
def test_an_event_has_the_time_of_the_read_that_ended_it(drawn: tuple[bytes, list[str]], places: list[int]) -> None:
    """Reading only what had been read by then gives the same chunks, and one read less gives one chunk less."""
    data, _ = drawn
    ends = [*cut(data, places), len(data)]
    result = result_of(taken(data, ends[:-1]))
    for number, chunk in enumerate(result.chunks):
        read = int(chunk.at)
        there = result_of(taken(data[: ends[read]], ends[:read])).chunks
        before = result_of(taken(data[: ends[read - 1]], ends[: read - 1])).chunks if read else ()
        assert len(before) <= number < len(there)


def test_every_mode_byte_by_byte() -> None:
    for name, mode in MODES.items():
        steps: list[Step] = mode.steps(Asked(mode.chat, 4, 3, counts=True, pace=Pace()))
        data = b"".join(step.data for step in steps if not step.data.startswith(b"<"))[:5000]
        whole, split = result_of(taken(data, cut(data, []))), result_of(taken(data, list(range(1, len(data)))))
        assert (whole.text, whole.usage, whole.finish_reason) == (split.text, split.usage, split.finish_reason), name
        assert (whole.void and whole.void.reason) == (split.void and split.void.reason), name


@given(
    st.lists(st.tuples(TEXT, st.integers(0, 2), st.booleans(), st.booleans()), min_size=2, max_size=8),
    st.booleans(),
    st.sampled_from([(", ", ": "), (",", ":")]),
)
def test_the_short_cut_says_what_the_parser_says(
    drawn: list[tuple[str, int, bool, bool]],
    chat: bool,  # noqa: FBT001 - drawn by hypothesis
    separators: tuple[str, str],
) -> None:
    quick, slow, made = Reading(), Reading(), 0
    for number, (text, more, counted, ascii_only) in enumerate(drawn):
        made += more
        body = value(text, made if counted else None, chat=chat)
        data = json.dumps(body, ensure_ascii=ascii_only, separators=separators).encode()
        slow.catch_up()
        faults = []
        for reading in (quick, slow):
            try:
                reading.take(Event(0, b"message", data), float(number))
                faults.append(None)
            except VoidError as error:
                faults.append(error.void)
        assert faults[0] == faults[1]
    quick.catch_up()
    slow.catch_up()
    assert (quick.chunks, quick.text, quick.total, quick.usage) == (slow.chunks, slow.text, slow.total, slow.usage)


def test_the_short_cut_is_taken_and_only_where_it_is_sure() -> None:
    body = value("a", 1, chat=True)
    data = json.dumps(body).encode()
    like = likeness_of(data, body, body["choices"][0])  # type: ignore[index]
    assert like is not None

    def made(text: str, count: int, **more: object) -> str | None:
        other = value(text, count, chat=True) | more
        return like.text_of(json.dumps(other, ensure_ascii=False).encode(), 2)

    assert made("b", 2) == "b"
    assert made("ü日", 2) == "ü日"
    assert [made("b", 3), made("", 2), made('"', 2), made("\n", 2), made("b", 2, id="101%")] == [None] * 5
    assert like.text_of(data.replace(b'"a"', b'"\xff"').replace(b": 1,", b": 2,").replace(b": 4}", b": 5}"), 2) is None
    assert like.text_of(data.replace(b'"a"', b'"\x01"').replace(b": 1,", b": 2,").replace(b": 4}", b": 5}"), 2) is None
    for odd in (
        value("a", 1, chat=True, finish="stop"),
        value("", 1, chat=True),
        value("a", 1, chat=True) | {"timings": {"a": 1}},
        value("a", 1, chat=True) | {"note": "content"},
        value("a", 1, chat=True) | {"other": {"completion_tokens": 1}},
        {"usage": value("a", 1, chat=True)["usage"]} | value("a", 1, chat=True),
    ):
        assert likeness_of(json.dumps(odd).encode(), odd, odd["choices"][0]) is None  # type: ignore[index]


def test_tokens_that_no_chunk_brought_are_in_no_time() -> None:
    values = [value("a", made, chat=False, finish="length") for made in (1, 2)]
    last = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 3}}
    data = [frame(f"data: {json.dumps(each)}\n\n".encode()) for each in (*values, last)]
    first = len(HEAD) + len(data[0])
    whole = HEAD + b"".join(data) + frame(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    result = result_of(taken(whole, [len(HEAD), first, first + len(data[1])]))
    assert (result.void, result.counted, result.tpot_s) == (None, True, 1.0)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n", [Event(9, b"message", b"a")]),
        (b"data:a\ndata: b\n\n", [Event(16, b"message", b"a\nb")]),
        (b"data: a\r\n\r\n", [Event(10, b"message", b"a")]),
        (b"data: a\r\rdata: b\r\r", [Event(9, b"message", b"a"), Event(18, b"message", b"b")]),
        (b"\n\n\nevent: x\ndata\n\n: c\n\n", [Event(18, b"x", b"")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(12, b"message", b"a")]),
        (b"event: x\n\ndata: a\n\n", [Event(19, b"message", b"a")]),
    ],
)
def test_events(stream: bytes, expected: list[Event]) -> None:
    assert list(events(stream)) == expected


def test_heads() -> None:
    head = read_head(b"HTTP/1.0 200\r\nA: b\r\na:c\r\nContent-Length: 3\r\nContent-Length: 3")
    assert head is not None
    assert (head.status, head.phrase, head.headers) == (200, "", {"a": "b, c", "content-length": "3"})
    for bad in (b"HTTP/2 200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 200 OK\r\nbad", b"HTTP/1.1 200 OK\r\n a: b", b""):
        assert read_head(bad) is None


def test_two_lengths_are_none() -> None:
    head = read_head(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4")
    assert head is not None
    assert head.headers == {"content-length": "3, 4"}


def test_a_connection_is_kept_only_after_a_whole_answer_with_nothing_behind_it() -> None:
    body = frame(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    assert taken(HEAD + body, []).reusable
    assert not taken(HEAD + body + b"x", []).reusable
    assert not taken(HEAD + body[:-2], []).reusable
    assert not taken(HEAD.replace(b"\r\n\r\n", b"\r\nConnection: Close\r\n\r\n") + body, []).reusable
    assert not taken(b"HTTP/1.1 200 OK\r\n\r\nabc", []).reusable
    assert taken(b"HTTP/1.1 204 OK\r\n\r\n", []).reusable
    assert taken(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", []).reusable
    assert not taken(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", []).reusable


@pytest.mark.parametrize(
    "data", [b"zz\r\n", b"3\r\nabcde0", b"-1\r\n", b"0x1\r\n", b"1_0\r\n", b"3\r\nabcde", b"1" * 5000, b"\r\n"]
)
def test_chunks_that_are_none(data: bytes) -> None:
    wire = taken(HEAD + frame(b": hm\n\n") + data + b"\r\n\r\n", [])
    assert wire.fault is not None
    assert wire.fault.reason is VoidReason.NOT_HTTP
    assert wire.body().data.startswith(b": hm\n\n")


def test_a_body_that_broke_off_is_read_as_far_as_it_came() -> None:
    wire = taken(HEAD + b"6\r\nabcdef\r\n6\r\ngh", [len(HEAD) + 5])
    assert (wire.body().data, wire.body().reach) == (b"abcdefgh", [2, 8, 8])
    assert taken(HEAD + b"3\r\nabc\r", []).body().data == b"abc"
    assert wire.fault is not None
    assert wire.fault.reason is VoidReason.DROPPED


@pytest.mark.parametrize(
    ("made", "finish", "reason"),
    [
        (9, "stop", None),
        (2, "length", None),
        (10, "stop", VoidReason.OUTPUT_LENGTH),
        (2, None, VoidReason.FINISH_REASON),
    ],
)
def test_a_length_that_is_not_forced(made: int, finish: str | None, reason: VoidReason | None) -> None:
    values = [value("a", made, chat=False), value("b", made, chat=False, finish=finish)]
    data = b"".join(frame(f"data: {json.dumps(each)}\n\n".encode()) for each in values)
    void = result_of(taken(HEAD + data + frame(b"data: [DONE]\n\n") + b"0\r\n\r\n", [])).void
    assert (void and void.reason) == reason


def test_byte_by_byte_an_event_has_the_time_of_its_last_byte() -> None:
    parts = [f"data: {json.dumps(value('a', made, chat=False))}\n\n".encode() for made in (1, 2, 3)]
    data = HEAD + b"".join(map(frame, parts))
    ends = [data.index(part) + len(part) for part in parts]
    result = result_of(taken(data, list(range(1, len(data)))))
    assert [chunk.at for chunk in result.chunks] == [end - 1 for end in ends], "the n-th byte has the time n"
