"""Server-sent events out of a whole stream (WHATWG HTML, section 9.2.6 "Interpreting an event stream")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_PLAIN = b"data: "


class Event(NamedTuple):
    """One event: with its first ``end`` bytes the stream holds all of it. ``kind`` is b"message" if nothing is said."""

    end: int
    kind: bytes
    data: bytes


def events(stream: bytes) -> Iterator[Event]:
    """Give the events in order. One that the stream breaks off within is none.

    An event is there with the first byte of the empty line after it: that CR or LF ends it, whatever follows.
    """
    at = len(_BOM) if stream.startswith(_BOM) else 0
    if b"\r" in stream:
        yield from _by_line(stream, at)
        return
    find, plain, size = stream.find, stream.startswith, len(_PLAIN)
    while (end := find(b"\n", at)) >= 0:
        if plain(_PLAIN, at) and plain(b"\n", end + 1):  # what every server sends
            yield Event(end + 2, b"message", stream[at + size : end])
            at = end + 2
        elif (end := find(b"\n\n", at)) < 0:
            return
        else:
            block, at = stream[at:end], end + 2
            if (event := _event(block.split(b"\n"), at)) is not None:
                yield event


def _by_line(stream: bytes, at: int) -> Iterator[Event]:
    lines: list[bytes] = []
    for end in _LINE_END.finditer(stream, at):
        line, at = stream[at : end.start()], end.end()
        if line:
            lines.append(line)
        elif lines:
            event = _event(lines, end.start() + 1)
            lines = []
            if event is not None:
                yield event


def _event(lines: list[bytes], end: int) -> Event | None:
    kind, data = b"", []
    for line in lines:
        name, _, value = line.partition(b":")  # a comment has an empty name
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            kind = value.removeprefix(b" ")
    return Event(end, kind or b"message", b"\n".join(data)) if data else None
