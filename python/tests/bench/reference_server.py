"""A server whose true times are known: the measuring client is held against it, mode by mode.

The first part of the URL's path names the mode: ``http://127.0.0.1:PORT/role/v1/chat/completions``. Modes are in
``reference_modes``, their parts in ``reference_streams``. By hand, or for benchmarks: ``python reference_server.py
[--port N] [--first MS] [--each MS]`` prints its URL; ``/truth`` then tells when each request was whole and when its
tokens were written, in seconds of the monotonic clock, and forgets it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from reference_modes import MODES
from reference_streams import ABORT, CLOSE, Asked, Pace

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence
    from typing import Self

    from reference_streams import Step


_TOGETHER = 4096  # bytes that are due at once and written at once; more takes another write


@dataclass
class Truth:
    """What really happened to one request."""

    mode: str
    arrived: float
    asked: int  # tokens
    connection: int  # number of the connection
    token_at: list[float] = field(default_factory=list)  # one entry a token
    shown_at: list[float] = field(default_factory=list)  # writes with something to see


class Reference(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._number = 0
        self._data = bytearray()
        self._busy = self._served = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._server.connections += 1
        self._server.say = transport.write
        self._number = self._server.connections

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, gap, rest = bytes(self._data).partition(b"\r\n\r\n") if not self._busy else (b"", b"", b"")
        if not gap:
            return
        lines = head.split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
        if len(rest) >= length:
            self._data.clear()
            self._server.heads.append(head)
            self._answer(lines[0].split()[1].decode(), rest)

    def _answer(self, path: str, body: bytes) -> None:
        name, _, path = path.lstrip("/").partition("/")
        now = self._loop.time()
        if not body:
            self._plain(name, path)
            return
        if MODES[name].once and self._served:
            self._transport.write(self._server.again)
            self._transport.close()
            return
        self._served = True
        told = json.loads(body)
        chat, prompt = path.endswith("/chat/completions"), told.get("prompt", "")
        asked = Asked(
            chat=chat,
            tokens=told.get("max_tokens") or told.get("max_completion_tokens") or 16,
            prompt=len(prompt) if isinstance(prompt, list) else 7,
            counts=bool((told.get("stream_options") or {}).get("continuous_usage_stats")),
            pace=self._server.pace,
        )
        steps = self._server.steps(name, asked)
        truth = Truth(name, now, asked.tokens, self._number)
        self._server.log.append(truth)
        self._busy = True
        self._go(truth, steps, 0)

    def _plain(self, name: str, path: str) -> None:
        value: object = {"data": [{"id": "reference", "root": "reference", "max_model_len": 65536}]}
        if name == "truth":
            value = [asdict(truth) for truth in self._server.log]
            self._server.log.clear()
        known = name == "truth" or path in {"v1/models", "health"} or name == "health"
        data = json.dumps(value).encode() if known else b'{"error":"Not Found"}'
        status = "200 OK" if known else "404 Not Found"
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._transport.write(head.encode() + data)

    def _go(self, truth: Truth, steps: Sequence[Step], number: int) -> None:
        """Take all steps that are due, and come back for the next one. What is due at once is written together."""
        due: list[bytes] = []
        size = 0
        while number < len(steps):
            after, data, tokens, shown = steps[number]
            now = self._loop.time()
            if truth.arrived + after > now:
                self._timer = self._loop.call_at(truth.arrived + after, self._go, truth, steps, number)
                break
            number += 1
            if data in {CLOSE, ABORT}:
                self._transport.write(b"".join(due))
                (self._transport.close if data is CLOSE else self._transport.abort)()
                return
            truth.token_at += [now] * tokens
            truth.shown_at += [now] * shown
            due.append(data)
            size += len(data)
            if size > _TOGETHER:
                self._transport.write(b"".join(due))
                due, size = [], 0
        self._busy = number < len(steps)
        self._transport.write(b"".join(due))


class Server:
    """Listens on 127.0.0.1; used as ``async with``."""

    def __init__(self, pace: Pace | None = None, context: ssl.SSLContext | None = None) -> None:
        self.pace = pace or Pace()
        self.log: list[Truth] = []
        self.heads: list[bytes] = []
        self.connections = 0
        self.again = b""  # what a connection's second request gets in the mode "once", before it is closed
        self.say: Callable[[bytes], None]  # to the last client that came
        self._context = context
        self._made: dict[tuple[str, Asked], list[Step]] = {}

    def steps(self, name: str, asked: Asked) -> list[Step]:
        key = (name, asked)
        if key not in self._made:
            self._made[key] = MODES[name].steps(asked)
        return self._made[key]

    async def listen(self, port: int = 0) -> str:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Reference(self), "127.0.0.1", port, ssl=self._context, backlog=1024
        )
        self.port: int = self._listener.sockets[0].getsockname()[1]
        return f"http{'s' if self._context else ''}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self.url = await self.listen()
        return self

    async def __aexit__(self, *_fault: object) -> None:
        self._listener.close()


async def _serve(server: Server, port: int) -> None:
    sys.stdout.write(f"{await server.listen(port)}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first", type=float, default=50.0, help="ms to the first token")
    parser.add_argument("--each", type=float, default=5.0, help="ms for each token after it")
    words = parser.parse_args()
    asyncio.run(_serve(Server(Pace(words.first / 1000, words.each / 1000)), words.port))


if __name__ == "__main__":
    main()
