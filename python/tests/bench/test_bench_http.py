from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def reply(body: bytes, status: str = "200 OK", *, length: int | None = None, more: str = "") -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n{more}\r\n".encode() + body


def whole_request(link: socket.socket) -> bytes:
    """Read all of it: hanging up on unread bytes would reset the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    size = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < size:
        body += link.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def raw_server(act: bytes | Callable[[socket.socket], None], *, timeout_s: float = 5.0) -> Iterator[Client]:
    """Answer one request with these bytes, or by this function, and hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            listener.settimeout(5)
            link, _ = listener.accept()
            with link:
                link.settimeout(5)
                whole_request(link)
                if callable(act):
                    act(link)
                else:
                    link.sendall(act)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Client(Endpoint("127.0.0.1", listener.getsockname()[1]), timeout_s)
        finally:
            thread.join()


def reason_of(act: bytes | Callable[[socket.socket], None], *, timeout_s: float = 5.0) -> str:
    with raw_server(act, timeout_s=timeout_s) as client, pytest.raises(BenchError) as told:
        client.post("/x", {})
    return told.value.reason


def until_closed(link: socket.socket) -> None:
    link.recv(1)


def dripping(link: socket.socket, hung_up: threading.Event) -> None:
    link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(200):
        try:
            link.sendall(b" ")
        except OSError:
            return hung_up.set()
        hung_up.wait(0.02)
    return None


def test_an_answer_is_its_status_and_its_json() -> None:
    with raw_server(reply(b'{"a": 1}')) as client:
        answer = client.post("/x", {"b": "é"})
    assert (answer.status, answer.body) == (200, {"a": 1})
    assert answer.seconds > 0
    with raw_server(reply(b"")) as client:
        answer = client.get("/health")
    assert (answer.body, answer.seconds > 0) == (None, True)
    with raw_server(reply(b"<html>", "502 Bad Gateway")) as client:
        assert (client.get("/x").status, "html") == (502, "html")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (reply(b"hello"), "not_json"),
        (reply(b"NaN"), "not_json"),
        (reply(b'"\xff"'), "not_json"),
        (reply(b'{"a": 1}', length=9), "protocol"),
        (reply(b"{}", "307 Temporary Redirect", more="Location: /y\r\n"), "redirect"),
        (b"SSH-2.0-OpenSSH\r\n", "protocol"),
        (b"", "protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}", "protocol"),
    ],
)
def test_what_is_no_answer_says_why(data: bytes, reason: str) -> None:
    assert reason_of(data) == reason


def test_silence_and_dripping_end_with_the_timeout() -> None:
    assert reason_of(until_closed, timeout_s=0.1) == "timeout"
    hung_up = threading.Event()
    assert reason_of(lambda link: dripping(link, hung_up), timeout_s=0.2) == "timeout"
    assert hung_up.is_set(), "the client kept the connection"


def flooding(link: socket.socket) -> None:
    link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(1_000_000):
        try:
            link.sendall(b" " * 1000)
        except OSError:
            return


def test_a_flood_ends_with_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """No read ever waits, so no timeout of a socket ends it."""
    monkeypatch.setattr("ttstack.bench.client.wire.LARGEST", 1 << 40)
    assert reason_of(flooding, timeout_s=0.05) == "timeout"


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.bench.client.wire.LARGEST", 1000)
    assert reason_of(reply(b" " * 5000)) == "protocol"


def test_no_listener_is_a_refused_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BenchError, match="Connection refused") as told:
        Client(Endpoint("127.0.0.1", port)).get("/health")
    assert told.value.reason == "connect"
    with pytest.raises(BenchError) as told:
        Client(Endpoint("a..b", 1)).get("/health")
    assert told.value.reason == "connect"


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with raw_server(reply(b"{}")) as client:
        assert client.get("/x").status == 200


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1", "127.0.0.1:8000", "http://", "http://h:99999", "http://h/?q", "http://a@h"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(BenchError):
        Client.of(url)


def test_urls() -> None:
    assert Client.of("http://127.0.0.1:8000/") == Client(Endpoint("127.0.0.1", 8000))
    assert Client.of("http://[::1]:8000/api/", 3) == Client(Endpoint("::1", 8000, "/api"), 3)
    assert Endpoint.of("https://h", "secret") == Endpoint("h", 443, "", True, "secret")  # noqa: FBT003 - by place, as a linter takes it for a password
    assert Endpoint("::1", 8000, "/api").url == "http://[::1]:8000/api"


def test_a_request_is_json_in_utf8() -> None:
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            with link:
                got.append(whole_request(link))
                link.sendall(reply(b"{}"))

        thread = threading.Thread(target=serve)
        thread.start()
        Client(Endpoint("127.0.0.1", listener.getsockname()[1], "/api")).post("/x", {"text": "日本語"})
        thread.join()
    head, body = got[0].split(b"\r\n\r\n", 1)
    assert head.startswith(b"POST /api/x HTTP/1.1\r\n")
    assert json.loads(body) == {"text": "日本語"}
    assert "日本語".encode() in body


def test_time_that_is_up_between_two_looks_at_the_clock_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket without a deadline would wait for ever: here, until the server hangs up."""
    ticks = iter(range(0, 1000, 10))
    with raw_server(lambda _link: time.sleep(0.3)) as client:
        monkeypatch.setattr("ttstack.bench.http.time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
        with pytest.raises(BenchError) as caught:
            client.raw("/metrics")
        monkeypatch.undo()
    assert caught.value.reason == "timeout"
