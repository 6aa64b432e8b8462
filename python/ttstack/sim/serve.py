"""The listening socket and its connections."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from http import HTTPStatus
from typing import TYPE_CHECKING

from ttstack.sim import shapes, wire
from ttstack.sim.errors import ApiError, GoneError

if TYPE_CHECKING:
    from collections.abc import Callable


class Server(ABC):
    """A web server; ``access`` is told one line per request."""

    def __init__(self, access: Callable[[str], None]) -> None:
        self._access = access
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @abstractmethod
    async def route(self, request: wire.Request, reply: wire.Reply) -> None:
        """Answer one request. Raises ApiError for a refusal, GoneError when the connection is to be dropped."""

    async def listen(self, host: str, port: int) -> int:
        """Bind and listen; return the port. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=wire.HEAD_BYTES, backlog=2048)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening, and cut every connection."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername") or ("-", 0)

        async def handle(request: wire.Request, reply: wire.Reply) -> None:
            try:
                await self.route(request, reply)
            except ApiError as fault:
                await self._refuse(fault, reply)
            except GoneError:
                reply.abort()
            status = f"{reply.status} {HTTPStatus(reply.status).phrase}" if reply.status else "dropped"
            self._access(f'{peer[0]}:{peer[1]} - "{request.method} {request.path} HTTP/1.1" {status}')

        self._writers.add(writer)
        try:
            await wire.converse(reader, writer, handle, self._refuse)
        except asyncio.CancelledError:
            # The process ends. Python before 3.12 prints a traceback for a cancelled connection, so it just ends here.
            return
        finally:
            self._writers.discard(writer)

    async def _refuse(self, fault: ApiError, reply: wire.Reply) -> None:
        await reply.send(fault.status, shapes.dump(shapes.error(fault)).encode(errors="replace"))
