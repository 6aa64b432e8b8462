"""A real engine process for tests, and a client that knows nothing of the engine's own code."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import ttstack
from ttstack.sim.host import make_host
from ttstack.sim.model import make_model

_LIMIT_S = 20.0
_QUICK = (
    "--port",
    "0",
    "--sim-boot-ms",
    "0",
    "--sim-teardown-ms",
    "0",
    "--sim-token-ms",
    "0",
    "--sim-prefill-rate",
    "0",
)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Engine:
    """One process; ``env`` and ``flags`` override the quick defaults (a later flag wins)."""

    folder: Path
    flags: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    root: str = ""
    cards: int = 2
    port: int = 0

    def __enter__(self) -> Self:
        roots = make_host(self.folder / "host", self.cards)
        self.root = self.root or str(make_model(self.folder / "model"))
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(ttstack.__file__).parents[1]),
            "TTX_SIM_DEV": str(roots.dev / "tenstorrent"),
            "TT_CACHE_PATH": str(self.folder / "cache"),
            "MESH_DEVICE": "P150x2",
            **self.env,
        }
        self.log_file = self.folder / f"log-{time.monotonic_ns()}"
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ttstack.sim", "serve", self.root, *_QUICK, *self.flags],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={name: value for name, value in env.items() if value != "UNSET"},
                cwd=self.folder,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(_LIMIT_S)

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + _LIMIT_S
        while text not in self.log:
            assert self.process.poll() is None, f"the engine ended: {self.log}"
            assert time.monotonic() < end, f"{text!r} did not come: {self.log}"
            time.sleep(0.005)

    def ready(self) -> Self:
        self.wait_for("Application startup complete.")
        found = re.search(r"Starting vLLM API server 0 on http://\S+?:(\d+)", self.log)
        assert found is not None
        self.port = int(found[1])
        return self

    def exit_code(self) -> int:
        return self.process.wait(_LIMIT_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.exit_code()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_LIMIT_S)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        return self.send("GET", path, None, **headers)

    def send(self, method: str, path: str, body: bytes | None, **headers: str) -> tuple[int, bytes]:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post(self, path: str, body: object) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = self.send("POST", path, data, **{"content-type": "application/json"})
        return status, json.loads(answer)

    def complete(self, prompt: object, **more: object) -> dict[str, Any]:
        status, answer = self.post("/v1/completions", {"prompt": prompt, "temperature": 0, **more})
        assert status == 200, answer
        return answer

    def text(self, prompt: object, **more: object) -> str:
        return str(self.complete(prompt, **more)["choices"][0]["text"])

    def events(self, body: dict[str, object], path: str = "/v1/completions") -> list[Any]:
        """Events of a stream, JSON decoded; the last is the text [DONE] when the stream was whole."""
        full = json.dumps({"temperature": 0, "stream": True, **body}).encode()
        connection = self.connect()
        try:
            connection.request("POST", path, full, {"content-type": "application/json"})
            answer = connection.getresponse()
            assert answer.status == 200
            assert (answer.getheader("content-type") or "").startswith("text/event-stream")
            data = answer.read().decode()
        finally:
            connection.close()
        lines = [part.removeprefix("data: ") for part in data.split("\n\n") if part]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


def joined(events: list[Any]) -> str:
    """Text of a completion's stream."""
    return "".join(choice["text"] for event in events[:-1] for choice in event["choices"])
