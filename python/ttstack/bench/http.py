"""A small blocking HTTP/1.1 client that keeps every arrival time. No redirects, no proxies, no retries.

Times are seconds of the monotonic clock since the request was sent; the connection is open and the body encoded before.
"""

from __future__ import annotations

import http.client
import json
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ttstack.bench.errors import BenchError
from ttstack.bench.sse import EventParser

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping

    from ttstack.bench.sse import Event

    _Reply = tuple[http.client.HTTPResponse, Iterator[tuple[float, bytes]]]

_LARGEST = 64 << 20  # bytes of one answer; more is a server gone wrong
_PIECE = 65536


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. ``body`` is the JSON value, or None when the body was empty."""

    status: int
    body: Any
    seconds: float  # until the last byte


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a stream, and when the last byte of it was read."""

    at: float
    body: Any


@dataclass(frozen=True, slots=True)
class Stream:
    """A streamed answer. When ``void`` says why, nothing of it may be used as a measurement."""

    chunks: tuple[Chunk, ...]  # JSON events, without [DONE]
    void: str
    seconds: float  # until the last byte that was read


@dataclass(frozen=True, slots=True)
class Client:
    """Requests to one server, one connection each. ``timeout_s`` bounds a request from connecting to its last byte."""

    host: str
    port: int
    prefix: str = ""
    timeout_s: float = 120.0

    @classmethod
    def of(cls, base_url: str, timeout_s: float = 120.0) -> Client:
        """Read ``http://host:port[/prefix]``. Raises BenchError for any other URL."""
        try:
            parts = urlsplit(base_url)
            port = parts.port or http.client.HTTP_PORT
        except ValueError as error:
            raise BenchError(f"{base_url!r} is not a URL: {error}", reason="connect") from error
        if parts.scheme != "http" or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise BenchError(
                f"cannot use {base_url!r} as a server",
                hint="give it as http://127.0.0.1:8000",
                reason="connect",
            )
        return cls(parts.hostname, port, parts.path.rstrip("/"), timeout_s)

    def get(self, path: str) -> Answer:
        """Ask for a JSON document. Raises BenchError, but not for a status of 4xx or 5xx."""
        return self._whole("GET", path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Send JSON, read JSON. Raises BenchError, but not for a status of 4xx or 5xx."""
        return self._whole("POST", path, body)

    def stream(self, path: str, body: Mapping[str, object]) -> Stream:
        """Send JSON, read server-sent events. Raises BenchError when the stream did not even begin."""
        with self._asked("POST", path, body) as (reply, pieces):
            kind = (reply.getheader("Content-Type") or "").partition(";")[0].strip().lower()
            if reply.status != http.client.OK:
                detail = b"".join(data for _, data in pieces)[:200].decode("utf-8", "replace")
                raise BenchError(f"{self._name(path)} answered {reply.status}: {detail}", reason="status")
            if kind != "text/event-stream":
                raise BenchError(f"{self._name(path)} answered {kind or 'no type'}, not a stream", reason="protocol")
            return _events(pieces)

    def _whole(self, method: str, path: str, body: Mapping[str, object] | None) -> Answer:
        data, at = b"", 0.0
        with self._asked(method, path, body) as (reply, pieces):
            for at, piece in pieces:  # noqa: B007 - the last one's time is the answer's
                data += piece
        try:
            return Answer(reply.status, _json(data) if data else None, at)
        except ValueError as error:
            if reply.status >= http.client.BAD_REQUEST:  # the status says enough; proxies answer in HTML
                return Answer(reply.status, data.decode("utf-8", "replace"), at)
            what = f"{self._name(path)} did not answer in JSON: {data[:80]!r}"
            raise BenchError(what, reason="not_json") from error

    @contextmanager
    def _asked(self, method: str, path: str, body: Mapping[str, object] | None) -> Iterator[_Reply]:
        """Send a request; yield the reply's head and the pieces of its body. Afterwards the connection is closed."""
        with closing(self._connect()) as link:
            sock = link.sock  # http.client forgets it once it knows that the server will close
            begin, reply = self._send(link, method, path, body)
            with reply:  # it keeps the connection open by itself
                yield reply, self._pieces(sock, reply, begin)

    def _connect(self) -> http.client.HTTPConnection:
        link = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        try:
            link.connect()
        except TimeoutError as error:
            raise self._late() from error
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that cannot be one
            why = getattr(error, "strerror", None) or error
            raise BenchError(f"cannot connect to {self._name()}: {why}", reason="connect") from error
        return link

    def _send(
        self, link: http.client.HTTPConnection, method: str, path: str, body: Mapping[str, object] | None
    ) -> tuple[float, http.client.HTTPResponse]:
        data = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        headers = {"Accept": "application/json, text/event-stream", "Connection": "close"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        begin = time.monotonic()
        try:
            link.request(method, self.prefix + path, data, headers)
            reply = link.getresponse()
        except TimeoutError as error:
            raise self._late() from error
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"{self._name(path)} broke off: {error!r}", reason="protocol") from error
        if 300 <= reply.status < 400:  # noqa: PLR2004 - the class of redirects
            where = reply.getheader("Location")
            raise BenchError(f"{self._name(path)} redirects to {where}, which is never followed", reason="redirect")
        return begin, reply

    def _pieces(
        self, sock: socket.socket, reply: http.client.HTTPResponse, begin: float
    ) -> Iterator[tuple[float, bytes]]:
        """Yield bytes as they come, each piece with its time; raise BenchError when they stop too early."""
        size = 0
        try:
            while True:
                left = begin + self.timeout_s - time.monotonic()
                if left <= 0:
                    raise self._late()
                if sock.fileno() >= 0:  # closed once the whole body is there
                    sock.settimeout(left)
                data = reply.read1(_PIECE)
                at = time.monotonic() - begin
                size += len(data)
                if size > _LARGEST:
                    raise BenchError(f"{self._name()} answered more than {_LARGEST} bytes", reason="protocol")
                yield at, data
                if not data:  # the end, which has its time as well
                    break
        except TimeoutError as error:
            raise self._late() from error
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"{self._name()} broke off within an answer: {error!r}", reason="protocol") from error
        if reply.length:
            raise BenchError(f"{self._name()} broke off {reply.length} bytes early", reason="protocol")

    def _late(self) -> BenchError:
        return BenchError(f"{self._name()} did not answer within {self.timeout_s:g} s", reason="timeout")

    def _name(self, path: str = "") -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.prefix}{path}"


def _events(pieces: Iterator[tuple[float, bytes]]) -> Stream:
    parser, chunks, done, void, at = EventParser(), list[Chunk](), False, "", 0.0
    try:
        for at, data in pieces:
            for event in parser.feed(data):
                if event.data == "[DONE]":
                    done = True
                    break
                chunk, fault = _chunk(event, at)
                void = void or fault
                chunks.extend([chunk] if chunk else [])
            if done:
                break
    except BenchError as error:
        void = void or error.message
    except UnicodeDecodeError:
        void = void or "the stream is not UTF-8"
    void = void or ("" if done else "it ended without [DONE]")
    return Stream(tuple(chunks), void, at)


def _chunk(event: Event, at: float) -> tuple[Chunk | None, str]:
    """Read one event: its chunk, and why the stream is void from here. An error may come inside a 200 stream."""
    try:
        body = _json(event.data.encode())
    except ValueError:
        return None, f"an event is not JSON: {event.data[:80]!r}"
    if event.kind == "error" or (isinstance(body, dict) and body.get("error")):
        return None, f"an error came inside the stream: {event.data[:200]}"
    return Chunk(at, body), ""


def _json(data: bytes) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(data.decode("utf-8"), parse_constant=_no_constant)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
