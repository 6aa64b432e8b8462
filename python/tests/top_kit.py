"""Runs as `ttx top` finds them, without an engine: this process is it, and a server here answers for it."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from ttstack.host import process
from ttstack.host.places import find_places
from ttstack.run.state import RunFolder, State, run_folder
from ttstack.sim.host import make_host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ttstack.host.types import Places

PAGE = """\
vllm:num_requests_running{{engine="0"}} 3.0
vllm:num_requests_waiting{{engine="0"}} 1.0
vllm:kv_cache_usage_perc{{engine="0"}} 0.25
vllm:prompt_tokens_total{{engine="0"}} {0}
vllm:generation_tokens_total{{engine="0"}} {0}
"""


class Server:
    """Answers GET /metrics with ``text``, in which {0} is what was asked so far, ``step`` for each; or hangs."""

    def __init__(self) -> None:
        self.text, self.status, self.step, self.served, self.asked = PAGE, 200, 10, 0, 0
        self.go = threading.Event()  # without it a request hangs
        self.go.set()
        self.port = 0

    def restart(self) -> None:
        self.served = 0


@contextmanager
def serving() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.asked += 1
            told.go.wait(30)
            told.served += told.step
            data = told.text.format(told.served).encode()
            self.send_response(told.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that went away
    told.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield told
    finally:
        told.go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def environ_in(base: Path) -> dict[str, str]:
    """Give an environment in which ttx keeps everything in a folder."""
    return {
        **os.environ,
        "TTX_STATE": str(base / "state"),
        "TTX_LOCKS": str(base / "locks"),
        "TTX_LEGACY_LOCK": str(base / "ttlock"),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
    }


def simulated_places(base: Path) -> Places:
    """Make the simulated host of that environment."""
    roots = make_host(base / "state" / "sim-host" / "tree", cards=2)
    return find_places(simulated=True, environ=environ_in(base), roots=roots)


def write_run(base: Path, port: int, name: str = "a", **more: object) -> tuple[RunFolder, State]:
    """Write a run of 90 s age that is ready and whose engine and supervisor are this process."""
    me = process.myself()
    state = State(
        run=f"20260131T235959-{name}",
        arm=f"arm-{name}",
        since=(datetime.now(UTC) - timedelta(seconds=90)).isoformat(timespec="seconds"),
        boot_id=process.boot_id(),
        simulated=True,
        phase="ready",
        step="ready",
        supervisor=me,
        engine=me,
        cards=(),
        host="127.0.0.1",
        port=port,
    )
    state = replace(state, **more)  # type: ignore[arg-type]
    folder = run_folder(base / "state", state.run)
    folder.path.mkdir(parents=True)
    folder.log.write_text('model loaded\nINFO: 127.0.0.1 - "GET /metrics HTTP/1.1" 200 OK\n')
    folder.write(state)
    return folder, state
