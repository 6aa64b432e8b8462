"""One request at a time, blocking, read by the measuring client's own HTTP. No redirects, proxies, retries.

Times are seconds of the monotonic clock since the request was sent; the connection is open and the body encoded before.
"""

from __future__ import annotations

import http
import json
import socket
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.request import ask_bytes, request_bytes
from ttstack.bench.client.result import Taken, read_result
from ttstack.bench.client.types import VoidReason
from ttstack.bench.client.wire import Wire
from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.bench.client.types import Ask, Result


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. ``body`` is the JSON value, or None when the body was empty."""

    status: int
    body: Any
    seconds: float  # until the last byte


@dataclass(frozen=True, slots=True)
class Client:
    """Requests to one server, one connection each. ``timeout_s`` bounds a request from connecting to its last byte."""

    endpoint: Endpoint
    timeout_s: float = 120.0

    @classmethod
    def of(cls, base_url: str, timeout_s: float = 120.0) -> Client:
        """Read ``http[s]://host[:port][/prefix]``. Raises BenchError for any other URL."""
        return cls(Endpoint.of(base_url), timeout_s)

    def get(self, path: str) -> Answer:
        """Ask for a JSON document. Raises BenchError, but not for a status of 4xx or 5xx."""
        return self._answer("GET", path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Send JSON, read JSON. Raises BenchError, but not for a status of 4xx or 5xx."""
        return self._answer("POST", path, body)

    def raw(self, path: str) -> tuple[int, bytes]:
        """Ask for a document that is no JSON: its status and bytes. Raises BenchError."""
        status, data, _ = self._whole("GET", path, None)
        return status, data

    def measure(self, ask: Ask) -> Result:
        """Ask for a stream and read all of it; times count from the send. Raises BenchError without a connection."""
        sent, wire = self._exchange(ask_bytes(self.endpoint, ask), ask.api.value)
        return read_result(Taken(ask, 0, sent, wire), sent, self.endpoint.token)

    def _answer(self, method: str, path: str, body: Mapping[str, object] | None) -> Answer:
        status, data, seconds = self._whole(method, path, body)
        try:
            return Answer(status, _json(data) if data else None, seconds)
        except ValueError as error:
            if status >= http.HTTPStatus.BAD_REQUEST:  # the status says enough; proxies answer in HTML
                return Answer(status, data.decode("utf-8", "replace"), seconds)
            what = f"{self._name(path)} did not answer in JSON: {data[:80]!r}"
            raise BenchError(what, reason="not_json") from error

    def _whole(self, method: str, path: str, body: Mapping[str, object] | None) -> tuple[int, bytes, float]:
        data = request_bytes(self.endpoint, method, path, body, keep=False)
        sent, wire = self._exchange(data, path)
        head = wire.head
        if wire.fault is not None or head is None:
            fault = wire.fault
            reason = _REASONS.get(fault.reason, "protocol") if fault is not None else "protocol"
            raise BenchError(f"{self._name(path)}: {fault.detail if fault else 'no answer'}", reason=reason)
        if 300 <= head.status < 400:  # noqa: PLR2004 - the class of redirects
            where = head.headers.get("location")
            raise BenchError(f"{self._name(path)} redirects to {where}, which is never followed", reason="redirect")
        coding = head.headers.get("content-encoding", "identity").lower()
        if coding != "identity":
            what = f"{self._name(path)} answered compressed ({coding}), though that was not asked for"
            raise BenchError(what, reason="protocol")
        return head.status, wire.body().data, wire.stamps[-1] - sent

    def _exchange(self, data: bytes, path: str) -> tuple[float, Wire]:
        """Send a request; return when, and its answer as far as it came. Raises BenchError without a connection."""
        until = time.monotonic() + self.timeout_s
        with closing(self._connect(path)) as sock:
            wire, sent = Wire(), time.monotonic()
            try:
                with suppress(
                    ConnectionError
                ):  # a server may refuse before it has read everything: the answer says why
                    sock.sendall(data)
                while not wire.whole and wire.fault is None:
                    sock.settimeout(max(0.001, until - time.monotonic()))  # 0 would be: do not wait; None: for ever
                    count = sock.recv_into(wire.room())
                    if count == 0:
                        wire.ended()
                    elif not wire.took(count) and time.monotonic() >= until:
                        wire.late(self.timeout_s)
            except TimeoutError:
                wire.late(self.timeout_s)
            except OSError:
                wire.ended()
        return sent, wire

    def _connect(self, path: str) -> socket.socket:
        endpoint = self.endpoint
        try:
            sock = socket.create_connection((endpoint.host, endpoint.port), self.timeout_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._secured(sock) if endpoint.tls else sock
        except TimeoutError as error:
            what = f"{self._name(path)} did not take a connection within {self.timeout_s:g} s"
            raise BenchError(what, reason="timeout") from error
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that cannot be one
            why = getattr(error, "strerror", None) or error
            raise BenchError(f"cannot connect to {self.endpoint.url}: {why}", reason="connect") from error

    def _secured(self, sock: socket.socket) -> socket.socket:
        from ttstack.bench.client.tls import tls_context  # noqa: PLC0415 - not for a server on this host

        try:
            return tls_context(self.endpoint).wrap_socket(sock, server_hostname=self.endpoint.host)
        except BaseException:
            sock.close()
            raise

    def _name(self, path: str = "") -> str:
        return f"{self.endpoint.url}{path}"


_REASONS = {
    VoidReason.TIMEOUT: "timeout",
    VoidReason.REDIRECT: "redirect",
}


def _json(data: bytes) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(data.decode("utf-8"), parse_constant=_no_constant)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
