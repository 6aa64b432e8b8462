from __future__ import annotations

import http.client
import json
import signal
import time
from typing import TYPE_CHECKING

import pytest
from sim_engine import Engine

if TYPE_CHECKING:
    from pathlib import Path


def test_teardown_takes_its_time(tmp_path: Path) -> None:
    """A lower bound only; further signals do not shorten it."""
    with Engine(tmp_path, ("--sim-teardown-ms", "250")) as engine:
        engine.ready()
        began = time.monotonic()
        engine.process.send_signal(signal.SIGTERM)
        engine.wait_for("Closing device 1")
        engine.process.send_signal(signal.SIGTERM)
        engine.process.send_signal(signal.SIGINT)
        assert engine.exit_code() == 0
        assert time.monotonic() - began >= 0.25
        lines = engine.log.splitlines()
        ends = ("Shutting down", "Closing device 0", "Closing device 1", "Closing user mode device drivers")
        places = [
            next(at for at, line in enumerate(lines) if text in line) for text in (*ends, "Finished server process")
        ]
        assert places == sorted(places)


def test_a_stop_before_the_devices_are_open_needs_no_teardown(tmp_path: Path) -> None:
    with Engine(tmp_path, ("--sim-teardown-ms", "600000", "--sim-fault", "hang:device")) as engine:
        engine.wait_for("TT worker standard-DP binding")
        assert engine.stop() == 0
        assert "Closing device" not in engine.log


def test_a_stop_cuts_requests(tmp_path: Path) -> None:
    with Engine(tmp_path, ("--sim-token-ms", "50")) as engine:
        engine.ready()
        connection = engine.connect()
        body = json.dumps({"prompt": "x", "max_tokens": 1000, "ignore_eos": True, "stream": True})
        connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.readline().startswith(b"data: ")
        assert engine.stop() == 0
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            answer.read()
        assert "Traceback" not in engine.log
