from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ttstack.bench.client.cache_hits import prefix_hits
from ttstack.bench.client.endpoint import Endpoint
from ttstack.bench.client.load import run_load
from ttstack.bench.client.request import ask_bytes, body_of
from ttstack.bench.client.types import Api, Ask, Closed, Limits, VoidReason

if TYPE_CHECKING:
    from collections.abc import Iterator

METRICS = """\
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1.5e+03
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 20.0
vllm:prefix_cache_hits_created{engine="0"} 1.7e+09
"""
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_a_completion_forces_its_length_and_asks_for_every_count() -> None:
    assert body_of(Ask("m", (1, 2, 3), 8)) == {
        "model": "m",
        "prompt": [1, 2, 3],
        "max_tokens": 8,
        "min_tokens": 8,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def test_what_may_be_asked_otherwise() -> None:
    ask = Ask("m", "hi", 8, Api.CHAT, forced=False, counts=False, token_ids=True, extra={"temperature": 1, "top_k": 5})
    assert body_of(ask) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 8,
        "temperature": 1,
        "top_k": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    }
    messages = ({"role": "system", "content": "a"}, {"role": "user", "content": "b"})
    assert body_of(Ask("m", messages, 8, Api.CHAT))["messages"] == list(messages)
    assert body_of(Ask("m", "hi", 8))["prompt"] == "hi"


def test_the_expected_length_of_a_prompt() -> None:
    assert Ask("m", (1, 2, 3), 8).expected_prompt == 3
    assert Ask("m", "hi", 8).expected_prompt is None
    assert Ask("m", ({"role": "user", "content": "b"},), 8, Api.CHAT).expected_prompt is None
    assert Ask("m", "hi", 8, prompt_tokens=9).expected_prompt == 9


def test_the_bytes_of_a_request() -> None:
    head, body = ask_bytes(Endpoint("::1", 80, "/api", token="t"), Ask("m", "日本", 8)).split(b"\r\n\r\n", 1)  # noqa: S106 - a test's
    lines = head.decode("ascii").split("\r\n")
    assert lines[0] == "POST /api/v1/completions HTTP/1.1"
    assert {"Host: [::1]:80", "Accept-Encoding: identity", "Authorization: Bearer t", "Connection: keep-alive"} <= {
        *lines
    }
    assert f"Content-Length: {len(body)}" in lines
    assert json.loads(body)["prompt"] == "日本"
    assert b"Authorization" not in ask_bytes(Endpoint("h", 80), Ask("m", "a", 8))


@contextmanager
def answering(answers: dict[str, list[bytes]]) -> Iterator[Endpoint]:
    """Answer each path with the next of its bodies, in threads, and hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                link, _ = listener.accept()
                link.settimeout(5)
                with link:
                    head, _, body = link.recv(65536).partition(b"\r\n\r\n")
                    size = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Le")), 0)
                    while len(body) < size:
                        body += link.recv(65536)
                    if head:
                        link.sendall(answers[head.split()[1].decode()].pop(0))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Endpoint("127.0.0.1", listener.getsockname()[1])
        finally:
            stop.set()
            socket.create_connection(listener.getsockname()).close()
            thread.join()


def text(body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def stream(*values: dict[str, Any]) -> bytes:
    return SSE + b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("answer", "hits"),
    [
        (text(METRICS), 1520.0),
        (text(METRICS.replace("prefix", "gpu_prefix")), 1520.0),
        (text("# nothing\n"), None),
        (text(METRICS, "404 Not Found"), None),
        (b"SSH\r\n", None),
    ],
)
def test_the_servers_count_of_cache_hits(answer: bytes, hits: float | None) -> None:
    with answering({"/metrics": [answer]}) as endpoint:
        assert prefix_hits(endpoint) == hits


def test_a_load_looks_at_the_servers_count_before_and_after() -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 1}
    made = {"choices": [{"index": 0, "text": "a", "finish_reason": "length"}]}
    answers = {
        "/metrics": [text(METRICS), text(METRICS.replace("20.0", "36.0"))] * 2,
        "/v1/completions": [stream(made, {"choices": [], "usage": usage})] * 2,
    }
    with answering(answers) as endpoint:
        found = run_load(endpoint, [Ask("m", (1, 2), 1)], Closed(1), Limits(timeout_s=5))
        assert (found.cache_hits, found.voids) == (16, {VoidReason.CACHE_HIT: 1})
        assert found.results[0].sent is not None
        assert found.results[0].ttft_s is None
        unseen = run_load(endpoint, [Ask("m", (1, 2), 1)], Closed(1), Limits(timeout_s=5, watch_cache=False))
    assert (unseen.cache_hits, unseen.voids) == (None, {})
    assert unseen.wall_began > unseen.began > 0
    assert 0 < (unseen.results[0].ttft_s or 0) <= (unseen.results[0].end_at or 0) <= unseen.seconds
    assert unseen.lag.samples >= 1
    assert unseen.cpu_s > 0
