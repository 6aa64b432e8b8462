"""HTTP/1.1 on asyncio's streams: keep-alive, bodies by length or in chunks, answers whole or as server-sent events."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from ttstack.sim.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

HEAD_BYTES = 32 * 1024
BODY_BYTES = 16 * 1024 * 1024
KEEP_ALIVE_S = 5.0  # uvicorn's default, which vLLM keeps
_MAX_DIGITS = 8  # of a chunk's size
_HEX = frozenset(b"0123456789abcdefABCDEF")
_LINGER_S = 0.5
_WORD = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


def _bad(message: str, status: int = 400) -> ApiError:
    return ApiError(status, message, kind=HTTPStatus(status).phrase)


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or not _WORD.issuperset(name):
            raise _bad("Invalid HTTP request received: bad header")
        key = name.lower()
        if key in headers and key in {"content-length", "transfer-encoding", "host"}:
            raise _bad(f"Invalid HTTP request received: {key} twice")
        headers[key] = value.strip()
    return headers


async def _head(reader: asyncio.StreamReader, wait: float | None) -> list[str]:
    """Request line and header lines. ``wait``: seconds until the first of them, None for no limit."""
    lines: list[str] = []
    left = HEAD_BYTES
    try:
        while True:
            async with asyncio.timeout(None if lines else wait):
                line = await reader.readuntil(b"\n")
            left -= len(line)
            text = line.rstrip(b"\r\n").decode("latin-1")
            if left < 0:
                raise _bad("Request header fields too large", 431)
            if not text and lines:
                return lines
            if not lines:
                _request_line(text)
            lines.append(text)
    except asyncio.LimitOverrunError:
        raise _bad("Request header fields too large", 431) from None


def _request_line(text: str) -> tuple[str, str, str]:
    """Split a request line into method, target and version. Raises ApiError."""
    words = text.split(" ")
    if len(words) != 3 or not words[0] or not _WORD.issuperset(words[0]) or not words[1].startswith("/"):  # noqa: PLR2004 - RFC 9112, section 3
        raise _bad("Invalid HTTP request received.")
    if words[2] not in {"HTTP/1.1", "HTTP/1.0"}:
        raise _bad("HTTP Version Not Supported", 505 if words[2].startswith("HTTP/") else 400)
    return words[0], words[1], words[2]


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Body in chunks; see RFC 9112, section 7.1."""
    body = bytearray()
    while True:
        line = await reader.readuntil(b"\n")
        digits = line.split(b";")[0].strip()
        if not 0 < len(digits) <= _MAX_DIGITS or not _HEX.issuperset(digits):
            raise _bad("Invalid HTTP request received: bad chunk")
        size = int(digits, 16)
        if len(body) + size > BODY_BYTES:
            raise _bad("Request body too large", 413)
        body += await reader.readexactly(size)
        if size == 0:
            # A trailer has no meaning here, and is refused as too long a head would be.
            if (await reader.readuntil(b"\n")).strip():
                raise _bad("Invalid HTTP request received: trailers")
            return bytes(body)
        if (await reader.readuntil(b"\n")).strip():
            raise _bad("Invalid HTTP request received: bad chunk")


async def _body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> bytes:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and (coding.lower() != "chunked" or length is not None):
        raise _bad("Invalid HTTP request received: bad Transfer-Encoding")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise _bad("Invalid HTTP request received: bad Content-Length")
    # Lengths of a hundred digits are too long to be read as numbers.
    size = int(length[:20]) if length else 0
    if size > BODY_BYTES:
        raise _bad("Request body too large", 413)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        return await _chunks(reader) if coding is not None else await reader.readexactly(size)
    except asyncio.LimitOverrunError:
        raise _bad("Invalid HTTP request received: bad chunk") from None


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait: float | None = None
) -> Request | None:
    """Read the next request; None when the peer goes away, or sends nothing for ``wait`` seconds.

    Raises ApiError for what is no HTTP or too large.
    """
    try:
        first, *lines = await _head(reader, wait)
        method, target, version = _request_line(first)
        headers = _headers(lines)
        body = await _body(reader, writer, headers)
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        return None
    connection = headers.get("connection", "").lower()
    keep = connection == "keep-alive" if version == "HTTP/1.0" else connection != "close"
    return Request(method, target.partition("?")[0], headers, body, keep)


class Reply:
    """The way back: one answer to one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0  # 0 until an answer was begun
        self.keep_alive = True
        self._streaming = False

    def gone(self) -> bool:
        """Tell whether the peer has hung up."""
        return self._reader.at_eof() or self._writer.is_closing()

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "server: uvicorn"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if not self.keep_alive:
            lines.append("connection: close")
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def send(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        """Send a whole answer; ``headers`` are further ones."""
        about = {"content-length": str(len(body)), **headers}
        self._start(status, {"content-type": kind, **about} if body else about)
        self._writer.write(body)
        await self._writer.drain()

    async def event(self, data: str) -> None:
        """Send one server-sent event, and before the first the head of a 200 stream."""
        if not self._streaming:
            self._streaming = True
            self._start(200, {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"})
        event = f"data: {data}\n\n".encode(errors="replace")
        self._writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await self._writer.drain()

    async def end(self) -> None:
        """End the stream."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def abort(self) -> None:
        """Drop the connection at once."""
        self.keep_alive = False
        self._writer.transport.abort()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what the peer still sends, for a while: closing over unread bytes would reset away our answer."""
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(HEAD_BYTES):
                pass


async def converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handle: Callable[[Request, Reply], Awaitable[None]],
    refuse: Callable[[ApiError, Reply], Awaitable[None]],
) -> None:
    """Answer the requests of one connection until it ends. ``refuse`` answers what is no request."""
    wait: float | None = None
    try:
        while True:
            reply = Reply(reader, writer)
            try:
                request = await read_request(reader, writer, wait)
            except ApiError as error:
                reply.keep_alive = False
                await refuse(error, reply)
                await _linger(reader, writer)
                return
            if request is None:
                return
            reply.keep_alive = request.keep_alive
            await handle(request, reply)
            if not reply.keep_alive:
                return
            wait = KEEP_ALIVE_S
    except ConnectionError:
        return
    finally:
        writer.close()
