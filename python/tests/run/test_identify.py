from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.host.cards import inventory
from ttstack.host.process import identify as name_of
from ttstack.host.process import myself
from ttstack.records.types import Identity
from ttstack.render.build import build_launch
from ttstack.run.identify import Subject, identify, sentence
from ttstack.run.logscan import scan_log, shows
from ttstack.run.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import World

LOG = ["multidevice with 1 devices", "GPU KV cache size: 1,024 tokens"]


class Handler(BaseHTTPRequestHandler):
    """Answers as an engine would, with what the test puts into ``served``."""

    served: dict[str, Any]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _send(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [self.served]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "text": "so it goes", "finish_reason": "length"}
        usage = {"prompt_tokens": 5, "completion_tokens": 8, "total_tokens": 13}
        self._send({"id": "c", "object": "text_completion", "model": "tiny", "choices": [choice], "usage": usage})


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def subject(world: World, port: int, *, log: list[str] | None = None) -> Subject:
    asked = load(str(world.arm("x", port=port)), find_shelf(world.base / "arms", {}, world.base))
    cards = inventory(world.places.roots)[:1]
    launch = build_launch(asked, cards, run_id="r", cache_root=str(world.places.cache))
    Handler.served = {"id": "tiny", "root": asked.model.path, "max_model_len": 2048}
    me = myself()
    state = State("r", "x", "", "", True, "ready", "ready", me, me, cards, "127.0.0.1", port)  # noqa: FBT003
    lines = [*LOG, f"Cache directory: {launch.cache_path}/P150"] if log is None else log
    seen = scan_log([f"{line}\n".encode() for line in lines], asked.arm.expect.banners, launch.cache_path)
    return Subject(asked, launch, state, seen, (me,))


def answers(subject: Subject) -> dict[str, bool | None]:
    found = identify(subject, lambda _: None, listen_wait_s=0)
    return {check.name: check.ok for check in found.checks}


@pytest.fixture
def as_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this very process pass for an engine that was started with the launch's environment."""

    monkeypatch.setattr("ttstack.run.identify.process.environ", lambda _pid: {"HOME": "/", **WANTED})


WANTED: dict[str, str] = {}


@pytest.mark.usefixtures("as_launched")
def test_an_engine_that_is_as_asked_is_confirmed(world: World, server: ThreadingHTTPServer) -> None:
    given = subject(world, server.server_port)
    WANTED.update(given.launch.env)
    found = identify(given, lambda _: None, listen_wait_s=0)
    assert Identity(found.checks).verdict == "confirmed", [sentence(c) for c in found.checks if c.ok is not True]
    assert (found.served_root, found.max_model_len) == (given.asked.model.path, 2048)
    assert len(found.banners) == 2


@pytest.mark.usefixtures("as_launched")
@pytest.mark.parametrize(
    ("changed", "name", "ok"),
    [
        ({"root": "/another"}, "served_root", False),
        ({"root": None}, "served_root", None),
        ({"id": "another"}, "served_id", False),
        ({"max_model_len": 1024}, "max_model_len", False),
        ({"max_model_len": "2048"}, "max_model_len", None),
        ({"max_model_len": True}, "max_model_len", None),
    ],
)
def test_what_is_served_must_be_what_was_asked(
    world: World, server: ThreadingHTTPServer, changed: dict[str, Any], name: str, ok: object
) -> None:
    given = subject(world, server.server_port)
    WANTED.update(given.launch.env)
    Handler.served = {**Handler.served, **changed}
    found = answers(given)
    assert found.pop(name) is ok
    assert set(found.values()) == {True}


def test_a_foreign_listener_is_refused_and_asked_nothing(world: World, server: ThreadingHTTPServer) -> None:
    given = subject(world, server.server_port)
    with subprocess.Popen(["sleep", "60"], env=dict(given.launch.env)) as other:
        name = name_of(other.pid)
        assert name is not None
        theirs = replace(given, state=replace(given.state, engine=name), engine=(name,))
        found = identify(theirs, lambda _: None, listen_wait_s=0)
        other.kill()
    by_name = {check.name: check for check in found.checks}
    assert by_name["listener"].ok is False
    assert f"pid {os.getpid()}" in str(by_name["listener"].found)
    assert by_name["served_root"].ok is None
    assert "completion" not in by_name
    assert Identity(found.checks).verdict == "refused"


def test_nobody_who_listens_is_a_no(world: World) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        found = answers(subject(world, bound.getsockname()[1]))
    assert found["listener"] is False


def test_an_environment_that_differs_or_cannot_be_read_is_refused(world: World) -> None:
    given = subject(world, 1)
    check = next(c for c in identify(given, lambda _: None, listen_wait_s=0).checks if c.name == "environment")
    assert check.ok is False  # this process was not started with the launch's environment
    assert isinstance(check.found, dict)
    assert check.found["TT_CACHE_PATH"] is None
    gone = replace(given, state=replace(given.state, engine=replace(myself(), start=1)))
    assert answers(gone)["environment"] is None


def test_the_cache_directory_must_be_named_and_be_the_keys(world: World) -> None:
    path = subject(world, 1).launch.cache_path
    line = "model_config:__init__:511 - Cache directory: "
    assert answers(subject(world, 1, log=[]))["cache_dir"] is None
    assert answers(subject(world, 1, log=[line + path]))["cache_dir"] is True
    assert answers(subject(world, 1, log=[f"{line}{path}/P150"]))["cache_dir"] is True
    assert answers(subject(world, 1, log=[f"{line}{path}-elsewhere/P150"]))["cache_dir"] is False
    assert answers(subject(world, 1, log=[f"{line}{path}/../other"]))["cache_dir"] is False
    assert answers(subject(world, 1, log=[line + "model_cache/x"]))["cache_dir"] is False
    assert answers(subject(world, 1, log=[line + path, line + "/other"]))["cache_dir"] is False


def test_a_cache_file_that_did_not_load_is_no_clean_boot(world: World) -> None:
    assert answers(subject(world, 1, log=[]))["cache_intact"] is True
    assert (
        answers(subject(world, 1, log=["x | Failed to load cache for /c/a.tensorbin: truncated"]))["cache_intact"]
        is False
    )


def test_a_banner_is_text_or_a_regular_expression() -> None:
    assert shows("GPU KV cache size: 133,120 tokens", "cache size: 133,120")
    assert not shows("aXc", "a.c")
    assert shows("aXc", "re:a.c")
