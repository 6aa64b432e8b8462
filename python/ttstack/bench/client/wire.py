"""One HTTP/1.1 answer as it was read: bytes and times first, meaning afterwards. Does no I/O.

While bytes come only two things are looked at: the head, once, and whether the answer is whole (RFC 9112, section 6).
"""

from __future__ import annotations

import functools
import re
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Void, VoidReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LARGEST = 256 << 20  # bytes of one answer; more is a server gone wrong
_LARGEST_HEAD = 64 << 10
_FIRST_BLOCK = 64 << 10
_LEAST_ROOM = 16 << 10
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?")
_CR, _LF = b"\r\n"
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: ([^\r\n]*))?")
_MOST_UNWALKED = 4096  # bytes
_LONGEST_LINE = 4096  # of a chunk's size with its extensions
_NO_BODY = {204, 304}
_H2_SETTINGS = 4  # the type of the frame that an HTTP/2 server begins with (RFC 9113, section 3.4)
_H2_HEAD = 9  # bytes of a frame's head


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers; names are in lower case."""

    status: int
    phrase: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Body:
    """The content, and what of it was there when: ``reach[i]`` bytes at ``times[i]``, both rising."""

    data: bytes
    reach: list[int]
    times: list[float]


class Wire:
    """Takes the reads of one answer. ``whole`` or ``fault`` is set when there is nothing more to wait for."""

    __slots__ = (
        "_body_at",
        "_buffer",
        "_chunked",
        "_clock",
        "_end",
        "_ends",
        "_frames",
        "_frames_end",
        "_length",
        "fault",
        "head",
        "head_at",
        "stamps",
        "whole",
    )

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buffer = bytearray(_FIRST_BLOCK)
        self._end = 0
        self._ends: list[int] = []
        self.stamps: list[float] = []
        self.head: Head | None = None
        self.head_at = 0.0
        self.whole = False
        self.fault: Void | None = None
        self._body_at = 0
        self._chunked = False
        self._length: int | None = None  # None: until the connection closes
        self._frames: list[tuple[int, int]] = []  # begin and end of each chunk's content that is whole
        self._frames_end = 0

    def room(self) -> memoryview:
        """Give the place for the next read."""
        if len(self._buffer) - self._end < _LEAST_ROOM:
            grown = bytearray(2 * len(self._buffer))  # extending in place fails while anybody holds a view
            grown[: self._end] = memoryview(self._buffer)[: self._end]
            self._buffer = grown
        return memoryview(self._buffer)[self._end :]

    def took(self, count: int) -> bool:
        """Note a read of ``count`` bytes; say whether there is nothing more to wait for."""
        self.stamps.append(self._clock())
        begin, end = self._end, self._end + count
        self._end = end
        self._ends.append(end)
        if self.head is None:
            self._look_for_head(begin)
            begin = self._body_at
        if self._chunked:
            # Every end of chunks holds this, and so does little else; the walk looks exactly. What there is to walk is
            # kept short, so that the last read of an answer takes no longer than any other.
            if end - self._frames_end > _MOST_UNWALKED or self._buffer.find(b"\r\n\r\n", begin - 3, end) >= 0:
                self._walk()
        elif self._length is not None and end - self._body_at >= self._length:
            self.whole = True
        if end > LARGEST:
            self._fail(VoidReason.TOO_LARGE, f"the answer is larger than {LARGEST} bytes")
        return self.whole or self.fault is not None

    def settle(self) -> None:
        """Give back the memory that no read needed; nothing may be read after that."""
        self._buffer = self._buffer[: self._end]

    def ended(self) -> None:
        """Note that the other side closed the connection."""
        if self.whole or self.fault is not None:
            return
        if self.head is not None and not self._chunked and self._length is None:
            self.whole = True
        elif self.head is None and self._end:
            self._refuse_head()
        else:
            self.stamps.append(self._clock())
            self._ends.append(self._end)
            what = "within the answer" if self._end else "before an answer"
            self._fail(VoidReason.DROPPED, f"the connection ended {what}, after {self._end} bytes")

    def late(self, seconds: float) -> None:
        """Note that time is up."""
        self._fail(VoidReason.TIMEOUT, f"it did not answer within {seconds:g} s")

    @property
    def bytes_read(self) -> int:
        """Bytes of head and body so far."""
        return self._end

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent over the same connection."""
        if not self.whole or self.head is None or (not self._chunked and self._length is None):
            return False
        expected = self._frames_end if self._chunked else self._body_at + (self._length or 0)
        return self._end == expected and "close" not in self.head.headers.get("connection", "").lower()

    def _fail(self, reason: VoidReason, detail: str) -> None:
        if self.fault is None:
            self.fault = Void(reason, detail)

    def _look_for_head(self, begin: int) -> None:
        """Read the head when it is whole; interim answers (1xx) before it are passed over."""
        start = self._body_at
        while True:
            if not self._buffer.startswith(b"HTTP/"[: self._end - start], start, self._end):
                if self._end >= _H2_HEAD or self._buffer[0]:  # else it may become a frame of HTTP/2
                    self._refuse_head()
                return
            at = self._buffer.find(b"\r\n\r\n", max(start, begin - 3), self._end)
            if at < 0:
                if self._end - start > _LARGEST_HEAD:
                    self._fail(VoidReason.NOT_HTTP, "the answer's head has no end")
                return
            head = read_head(bytes(self._buffer[start:at]))
            start = self._body_at = at + 4
            if head is None:
                self._refuse_head()
                return
            if head.status >= 200:  # noqa: PLR2004 - below are the interim ones
                break
        self.head, self.head_at = head, self.stamps[-1]
        self._frame(head)

    def _frame(self, head: Head) -> None:
        coding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
        self._frames_end = self._body_at
        if head.status in _NO_BODY:
            self._length = 0
        elif coding is not None:
            self._chunked = coding.strip().lower() == "chunked"
            if not self._chunked:
                self._fail(VoidReason.COMPRESSED, f"the answer has the transfer coding {coding!r}, which is not read")
        elif length is not None:
            if length.isascii() and length.isdigit():
                self._length = int(length[:20])
            else:
                self._fail(VoidReason.NOT_HTTP, f"the answer's length is {length[:80]!r}")

    def _refuse_head(self) -> None:
        data = bytes(self._buffer[: min(self._end, 40)])
        if len(data) >= _H2_HEAD and data[3] == _H2_SETTINGS and not any(data[5:_H2_HEAD]):
            self._fail(VoidReason.HTTP2, "the server speaks only HTTP/2, this client HTTP/1.1")
        else:
            self._fail(VoidReason.NOT_HTTP, f"the answer is not HTTP/1.1: {data!r}")

    def _walk(self) -> None:
        """Read the chunks' framing as far as it is there."""
        buffer, at, end, frames = self._buffer, self._frames_end, self._end, self._frames
        while (line := buffer.find(b"\r\n", at, min(end, at + _LONGEST_LINE))) >= 0:
            size = _size(bytes(buffer[at:line]))
            if size is None:
                break
            begin = line + 2
            if size == 0:
                # Trailers, if any, and an empty line.
                last = line if buffer.startswith(b"\r\n", begin, end) else buffer.find(b"\r\n\r\n", begin, end)
                if last >= line:
                    self._frames_end = last + 4
                    self.whole = True
                return
            after = begin + size
            if after + 2 > end:
                return
            if buffer[after] != _CR or buffer[after + 1] != _LF:
                self._fail(VoidReason.NOT_HTTP, "a chunk is longer than its size")
                return
            frames.append((begin, after))
            at = self._frames_end = after + 2
        if line >= 0 or end - at > _LONGEST_LINE:
            self._fail(VoidReason.NOT_HTTP, f"a chunk has no size: {bytes(buffer[at : at + 40])!r}")

    def body(self) -> Body:
        """Give what there is of the content, of an answer that broke off as well."""
        buffer, end = self._buffer, self._end
        if not self._chunked:
            last = end if self._length is None else min(end, self._body_at + self._length)
            pieces = [(self._body_at, max(last, self._body_at))]
        else:
            if not self.whole:
                self._walk()
            pieces = list(self._frames)
            line = -1 if self.whole else buffer.find(b"\r\n", self._frames_end, end)
            size = _size(bytes(buffer[self._frames_end : line])) if line >= 0 else None
            if size is not None:  # the beginning of a chunk that broke off
                pieces.append((line + 2, min(end, line + 2 + size)))
        view = memoryview(buffer)
        data = b"".join([view[begin:stop] for begin, stop in pieces])
        return Body(data, self._reach(pieces), self.stamps)

    def _reach(self, pieces: list[tuple[int, int]]) -> list[int]:
        """Count the bytes of content that were there after each read."""
        reach, whole, rest = [], 0, iter([*pieces, (sys.maxsize, sys.maxsize)])
        begin, stop = next(rest)
        for end in self._ends:
            while stop <= end:
                whole += stop - begin
                begin, stop = next(rest)
            reach.append(whole + end - begin if end > begin else whole)
        return reach


@functools.lru_cache(maxsize=4096)  # a stream has few sizes
def _size(word: bytes) -> int | None:
    """Read a chunk's size; None when it is none."""
    found = _SIZE.fullmatch(word)
    return None if found is None else int(found[1], 16)


def read_head(data: bytes) -> Head | None:
    """Read a status line and headers; None when that is not what they are. A header that comes twice is joined."""
    first, *lines = data.split(b"\r\n")
    status = _STATUS_LINE.fullmatch(first)
    if status is None:
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not name or name != name.strip():
            return None
        key, value = name.lower(), value.strip()
        if key == "content-length" and headers.get(key, value) == value:
            headers[key] = value
        else:
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return Head(int(status[1]), (status[2] or b"").decode("latin-1"), headers)
