"""A small server that answers as vLLM does, or wrong in one chosen way."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LEN = 4096
DONE = b"data: [DONE]\n\n"


def frame(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


class Fake(ThreadingHTTPServer):
    """``wrong`` names what this server does wrong; ``seen`` counts completions of each body."""

    daemon_threads = True

    def __init__(self, wrong: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wrong = wrong
        self.seen: dict[str, int] = {}
        self.dead = self.muddled = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving(wrong: str = "") -> Iterator[Fake]:
    with Fake(wrong) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def fake(self) -> Fake:
        return cast("Fake", self.server)

    def log_message(self, *_args: object) -> None:
        pass

    def answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wrong = self.fake.wrong
        if self.fake.dead:
            self.answer(500, {"error": {"message": "EngineDeadError"}})
        elif self.path == "/tokenize" and wrong != "no_tokenize":
            self.answer(200, {"tokens": list(body["prompt"].encode()), "count": len(body["prompt"].encode())})
        elif self.path == "/detokenize":
            text = bytes(body["tokens"]).decode()
            self.answer(200, {"prompt": text.encode("ascii", "replace").decode() if wrong == "ascii" else text})
        elif self.path == "/v1/completions":
            self.complete(body)
        else:
            self.answer(404, {"detail": "Not Found"})

    def complete(self, body: dict[str, Any]) -> None:
        wrong, prompt = self.fake.wrong, body["prompt"]
        size = len(prompt.encode()) if isinstance(prompt, str) else len(prompt)
        if size + body["max_tokens"] > MAX_LEN:
            return self.refuse(body, size)
        key = json.dumps(body, sort_keys=True)
        self.fake.seen[key] = self.fake.seen.get(key, 0) + 1
        salt = "x" if self.fake.muddled or (wrong == "random" and self.fake.seen[key] == 2) else ""
        asked = 6 if wrong == "short" and body["max_tokens"] == 17 else body["max_tokens"]
        words = [f" {hashlib.sha256(f'{salt}{prompt}{n}'.encode()).hexdigest()[:6]}" for n in range(asked)]
        if wrong == "broken" and not isinstance(prompt, list) and not prompt.isascii():
            words[1] = "\ufffd"
        if wrong == "empty":
            words = [""] * len(words)
        text, reason, count = "".join(words), "length", len(words)
        if wrong == "reason" and body["max_tokens"] == 17:
            reason = "stop"
        if stop := body.get("stop"):
            text, reason, count = self.stopped(text, stop[0], count)
        if wrong == "clipped" and size > 1000:
            size = 1000
        if wrong == "unicode_lost" and not isinstance(prompt, list) and not prompt.isascii():
            size = 3
        usage = {"prompt_tokens": size, "completion_tokens": count, "total_tokens": size + count}
        if body.get("stream"):
            return self.stream(text, reason, usage)
        choice = {"index": 0, "text": text, "finish_reason": reason, "logprobs": None}
        return self.answer(200, {"id": "c", "choices": [choice], "usage": usage})

    def stopped(self, text: str, stop: str, count: int) -> tuple[str, str, int]:
        wrong, at = self.fake.wrong, text.index(stop)
        made = count if wrong == "stop_goes_on" else at // 7 + 1
        if wrong == "stop_ignored":
            return text, "length", count
        if wrong == "stop_kept":
            return text[: at + len(stop)], "stop", made
        return text[:at], "length" if wrong == "stop_reason" else "stop", made

    def refuse(self, body: dict[str, Any], size: int) -> None:
        wrong = self.fake.wrong
        if wrong == "oversize_taken":
            usage = {"prompt_tokens": size, "completion_tokens": 1}
            return self.answer(200, {"choices": [{"text": "x", "finish_reason": "length"}], "usage": usage})
        self.fake.dead, self.fake.muddled = wrong == "oversize_kills", wrong == "oversize_muddles"
        status = {"oversize_500": 500, "oversize_429": 429}.get(wrong, 400)
        return self.answer(
            status, {"error": {"message": f"maximum context length is {MAX_LEN}", "type": body["model"]}}
        )

    def stream(self, text: str, reason: str, usage: dict[str, int]) -> None:
        wrong = self.fake.wrong
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if wrong == "stream_text":
            text = text[:-1]
        if wrong == "stream_usage":
            usage = {**usage, "completion_tokens": usage["completion_tokens"] - 1}
        half = len(text) // 2
        self.piece(frame({"choices": [{"text": "", "finish_reason": None}], "usage": None}))
        self.piece(frame({"choices": [{"text": text[:half], "finish_reason": None}]}))
        if wrong == "stream_error":
            self.piece(frame({"error": {"message": "EngineCore died", "code": 500}}))
        if wrong == "stream_garbage":
            self.piece(b"data: {half\n\n")
        if wrong == "stream_drop":
            self.close_connection = True
            return
        last = "stop" if wrong == "stream_reason" else reason
        self.piece(frame({"choices": [{"text": text[half:], "finish_reason": last}]}))
        if wrong != "stream_no_usage":
            self.piece(frame({"choices": [], "usage": usage}))
        if wrong != "stream_no_done":
            self.piece(DONE)
        self.wfile.write(b"0\r\n\r\n")

    def piece(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()
