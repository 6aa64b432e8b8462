from __future__ import annotations

import asyncio
import random
import socket
from typing import TYPE_CHECKING

import pytest

from ttstack.sim.wire import read_request

if TYPE_CHECKING:
    from sim_engine import Engine

_JSON = b"content-type: application/json\r\n"


def _exchange(engine: Engine, data: bytes) -> bytes:
    """Send, end our side, read all there is."""
    with socket.create_connection(("127.0.0.1", engine.port), timeout=20) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while part := sock.recv(65536):
            answer += part
    return answer


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GARBAGE\n", 400),
        (b"GARBAGE\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /health\r\n\r\n", 400),
        (b"GET  /health HTTP/1.1\r\n\r\n", 400),
        (b"GET health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health FTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/2.0\r\n\r\n", 505),
        (b"G\x00T /health HTTP/1.1\r\n\r\n", 400),
        (b"\xff\xfe\xfd\n\n", 400),
        (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nx: " + b"y" * 40000 + b"\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\n" + b"x: y\r\n" * 9000 + b"\r\n", 431),
        (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", 400),
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: 16777217\r\n\r\n", 413),
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: " + b"9" * 300 + b"\r\n\r\n", 413),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n", 413),
        (b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\n" + _JSON + b"content-length: 1\r\n\r\n{", 400),
        (b"POST /tokenize HTTP/1.1\r\n" + _JSON + b"content-length: 0\r\n\r\n", 400),
        (b"POST /tokenize HTTP/1.1\r\n" + _JSON + b"content-length: 2\r\n\r\n[]", 400),
        (b"POST /tokenize HTTP/1.1\r\n" + _JSON + b"content-length: 2\r\n\r\n\xff\xff", 400),
        (b"POST /tokenize HTTP/1.1\r\n" + _JSON + b"content-length: 100000\r\n\r\n" + b"[" * 100000, 400),
        (b"POST /tokenize HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 415),
        (b"POST /tokenize HTTP/1.1\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}", 415),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /v1/models/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /tokenize HTTP/1.1\r\n\r\n", 405),
        (b"DELETE /v1/models HTTP/1.1\r\n\r\n", 405),
        (b"HEAD /nothing HTTP/1.1\r\n\r\n", 404),
        (b"BREW /health HTTP/1.1\r\n\r\n", 405),
        (b"GET /health?x=1 HTTP/1.1\r\n\r\n", 200),
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
        (b"GET /health HTTP/1.1\nconnection: close\n\n", 200),
    ],
)
def test_garbage(live: Engine, data: bytes, status: int) -> None:
    answer = _exchange(live, data)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    if status != 200:
        assert b'"error"' in answer
    assert live.get("/health") == (200, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET",
        b"GET /health HTTP/1.1\r\n",
        b"GET /health HTTP/1.1\r\nx: y",
        b"POST /tokenize HTTP/1.1\r\ncontent-length: 9\r\n\r\n{",
        b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_half_a_request_gets_no_answer(live: Engine, data: bytes) -> None:
    assert _exchange(live, data) == b""
    assert live.get("/health") == (200, b"")


def test_random_bytes(live: Engine) -> None:
    source = random.Random(7)  # noqa: S311 - the same bytes each time are what is wanted
    good = b"POST /v1/completions HTTP/1.1\r\n" + _JSON + b'content-length: 14\r\n\r\n{"prompt":"x"}'
    for _ in range(60):
        data = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        _exchange(live, bytes(data))
    assert live.get("/health") == (200, b"")


def test_a_body_in_chunks(live: Engine) -> None:
    head = b"POST /tokenize HTTP/1.1\r\ntransfer-encoding: Chunked\r\nconnection: close\r\n" + _JSON
    answer = _exchange(live, head + b'\r\n8;a=b\r\n{"prompt\r\n6\r\n":"x"}\r\n0\r\n\r\n')
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close\r\n" in answer
    assert b'"tokens":[120]' in answer


def test_two_requests_at_once(live: Engine) -> None:
    answer = _exchange(live, b"GET /version HTTP/1.1\r\n\r\nGET /load HTTP/1.1\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert answer.index(b"0.25.1") < answer.index(b"server_load")


def test_expect_continue(live: Engine) -> None:
    head = b"POST /tokenize HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 14\r\n" + _JSON + b"\r\n"
    answer = _exchange(live, head + b'{"prompt":"x"}')
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


def test_an_answer_survives_a_body_that_is_too_large(live: Engine) -> None:
    """The refusal must reach a client that is still sending when it is made."""
    size = 17 * 1024 * 1024
    head = b"POST /tokenize HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % size
    assert _exchange(live, head + b"x" * (4 * 1024 * 1024)).startswith(b"HTTP/1.1 413 ")


def test_an_idle_connection_ends() -> None:
    """The wait is for the next request's first line only; without a limit it would never return."""

    async def idle() -> object:
        async with asyncio.timeout(20):
            # The writer is not touched before there is a request.
            return await read_request(asyncio.StreamReader(), None, 0.01)  # type: ignore[arg-type]

    assert asyncio.run(idle()) is None
