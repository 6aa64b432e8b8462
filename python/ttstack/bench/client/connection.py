"""Connections that stamp every read: asyncio's buffered protocol, so that no library stands before the clock."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from typing import TYPE_CHECKING

from ttstack.bench.client.tls import tls_context
from ttstack.bench.client.types import Void, VoidReason
from ttstack.bench.client.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.bench.client.endpoint import Endpoint

_IDLE_ROOM = 4096


class ConnectError(Exception):
    """No connection; ``void`` says why."""

    def __init__(self, void: Void) -> None:
        super().__init__(void.detail)
        self.void = void


class Turns:
    """Lets one request a round of the loop go on after its end, so that the reads of all others come between.

    When many answers end at once, the work between one request and the next would else delay the others' last stamps.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._called = False

    def add(self, done: asyncio.Future[None]) -> None:
        """Take a request that is over."""
        self._waiting.append(done)
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        done = self._waiting.popleft()
        if not done.done():
            done.set_result(None)
        self._called = bool(self._waiting)
        if self._called:
            asyncio.get_running_loop().call_soon(self._next)


class Connection(asyncio.BufferedProtocol):
    """One connection, one request at a time."""

    def __init__(self, clock: Callable[[], float], turns: Turns) -> None:
        self._clock = clock
        self._turns = turns
        self._transport: asyncio.Transport | None = None
        self._wire: Wire | None = None
        self._done: asyncio.Future[None] | None = None
        self._spare = bytearray(_IDLE_ROOM)
        self._broken = False
        self.used = False

    @property
    def ready(self) -> bool:
        """Whether a request may be sent."""
        return self._wire is None and not self._broken and self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio)."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream has no other
        self._transport = transport

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Give the place for the next read (asyncio)."""
        return memoryview(self._spare) if self._wire is None else self._wire.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Take a read (asyncio)."""
        if self._wire is None:
            self.close()  # nobody asked for anything: what comes cannot be the answer to the next request
        elif self._wire.took(nbytes):
            self._finish()

    def eof_received(self) -> None:
        """Note the end of what the server sends (asyncio closes the connection then)."""
        self._over()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Note that the connection is gone (asyncio)."""
        self._over()

    def _over(self) -> None:
        self._broken = True
        if self._wire is not None:
            self._wire.ended()
            self._finish()

    def _finish(self) -> None:
        self._wire = None
        if self._done is not None:
            self._turns.add(self._done)
            self._done = None

    async def ask(self, data: bytes, timeout_s: float) -> tuple[float, Wire]:
        """Send a request and take its answer; return when it was sent. The wire holds whatever went wrong."""
        assert self._transport is not None  # noqa: S101 - ``ready`` says so
        loop = asyncio.get_running_loop()
        self._wire = wire = Wire(self._clock)
        self._done = done = loop.create_future()
        timer = loop.call_later(timeout_s, self._late, timeout_s)
        sent = self._clock()
        self._transport.write(data)
        try:
            await done
        finally:
            timer.cancel()
            self._wire = self._done = None  # still set when the load was cancelled
            self.used = True
            wire.settle()
            if not wire.reusable:
                self.close()
        return sent, wire

    def _late(self, timeout_s: float) -> None:
        if self._wire is not None:
            self._wire.late(timeout_s)
            self._finish()

    def close(self) -> None:
        """Hang up, now."""
        self._broken = True
        if self._transport is not None:
            self._transport.abort()


async def connect(endpoint: Endpoint, timeout_s: float, turns: Turns) -> Connection:
    """Open a connection, stamped by the loop's own clock. Raises ConnectError."""
    loop = asyncio.get_running_loop()
    try:
        context = tls_context(endpoint) if endpoint.tls else None
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                lambda: Connection(loop.time, turns), endpoint.host, endpoint.port, ssl=context
            )
    except (OSError, UnicodeError) as error:
        raise ConnectError(connect_fault(endpoint, error, timeout_s)) from error
    return connection


def connect_fault(endpoint: Endpoint, error: Exception, timeout_s: float) -> Void:
    """Say why there is no connection."""
    where = endpoint.url
    if isinstance(error, TimeoutError):
        return Void(VoidReason.TIMEOUT, f"{where} did not take a connection within {timeout_s:g} s")
    if isinstance(error, ssl.SSLError):
        if "NO_APPLICATION_PROTOCOL" in (error.reason or ""):
            return Void(VoidReason.HTTP2, f"{where} speaks only HTTP/2, this client HTTP/1.1")
        why = getattr(error, "verify_message", "") or error.reason or error
        return Void(VoidReason.TLS, f"no TLS with {where}: {why}")
    number = getattr(error, "errno", None)
    why = os.strerror(number) if number is not None and number > 0 else getattr(error, "strerror", None) or error
    return Void(VoidReason.CONNECT, f"cannot connect to {where}: {why}")
