from __future__ import annotations

import http.client
import json
import re
import signal
from pathlib import Path

import pytest
from sim_engine import Engine, joined

from ttstack.sim.faults import FAULTS, STEPS
from ttstack.sim.steps import PRINT


def _faulty(tmp_path: Path, *faults: str, flags: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Engine:
    asked = tuple(word for fault in faults for word in ("--sim-fault", fault))
    return Engine(tmp_path, (*asked, *flags), env or {})


@pytest.mark.parametrize("step", ["plugin", "device", "cache", "ready"])
def test_die(tmp_path: Path, step: str) -> None:
    with _faulty(tmp_path, f"die:{step}") as engine:
        assert engine.exit_code() == 1
        assert "EngineCore failed to start." in engine.log
        assert "Engine core initialization failed." in engine.log
        assert f"told to die at step {step}" in engine.log
        assert "Application startup complete." not in engine.log
        banners = {"plugin": "Platform plugin tt", "mesh": "multidevice with", "cache": "Generating cache for"}
        for name, text in banners.items():
            assert (text in engine.log) == (STEPS.index(name) < STEPS.index(step))


def test_hang(tmp_path: Path) -> None:
    with _faulty(tmp_path, "hang:ready") as engine:
        engine.wait_for("Scheduler class: TTScheduler")
        assert engine.stop() == 0
        assert "Starting vLLM API server" not in engine.log


def test_every_step_can_be_taken() -> None:
    assert set(PRINT) | {"device", "cache", "ready"} == set(STEPS)


def test_hang_lock(tmp_path: Path) -> None:
    with _faulty(tmp_path, "hang-lock") as engine:
        text = "Waiting for lock 'CHIP_IN_USE_0_PCIe' which is currently held by thread TID: 1, PID: 1"
        engine.wait_for(text)
        assert "Starting devices" not in engine.log
        assert engine.stop() == 0


def test_die_serving(tmp_path: Path) -> None:
    with _faulty(tmp_path, "die-serving:2") as engine:
        engine.ready()
        engine.text("x")
        assert engine.get("/health")[0] == 200
        engine.text("x")
        assert engine.exit_code() == 1
        assert "EngineCore encountered a fatal error." in engine.log


def test_a_dead_engine_answers_as_vllm_s_does(tmp_path: Path) -> None:
    env = {"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "1"}
    with _faulty(tmp_path, "die-serving:1", env=env, flags=("--sim-token-ms", "20")) as engine:
        engine.ready()
        connection = engine.connect()
        body = json.dumps({"prompt": "x", "max_tokens": 5000, "ignore_eos": True, "stream": True})
        connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
        stream = connection.getresponse()
        assert stream.readline().startswith(b"data: ")
        engine.text("x", max_tokens=1)
        rest = stream.read().decode()
        assert rest.endswith("data: [DONE]\n\n")
        assert json.loads(rest.strip().split("\n\n")[-2].removeprefix("data: "))["error"]["code"] == 500
        assert engine.get("/health") == (503, b"")
        status, answer = engine.post("/v1/completions", {"prompt": "x"})
        assert (status, answer["error"]["type"]) == (500, "InternalServerError")
        assert engine.stop() == 0


def test_ignore_sigterm(tmp_path: Path) -> None:
    with _faulty(tmp_path, "ignore-sigterm") as engine:
        engine.ready()
        engine.process.send_signal(signal.SIGTERM)
        # It serves on after the signal was delivered; a hundred requests are many turns of its loop.
        for _ in range(100):
            assert engine.get("/health")[0] == 200
        assert engine.stop(signal.SIGINT) == 0


def test_silent_port(tmp_path: Path) -> None:
    with _faulty(tmp_path, "silent-port", flags=("--port", "1")) as engine:
        engine.ready()
        with pytest.raises(ConnectionRefusedError):
            engine.get("/health")


def test_missing_banner(tmp_path: Path) -> None:
    with _faulty(tmp_path, "missing-banner:multidevice with", "missing-banner:KV cache size") as engine:
        engine.ready()
        assert "multidevice with" not in engine.log
        assert "KV cache size" not in engine.log
        assert "Fabric initialized on 2 devices" in engine.log


def test_wrong_root_and_length(tmp_path: Path) -> None:
    with _faulty(tmp_path, "wrong-root", "wrong-max-len", flags=("--max-model-len", "1000")) as engine:
        engine.ready()
        model = json.loads(engine.get("/v1/models")[1])["data"][0]
        assert model["root"] != engine.root
        assert model["max_model_len"] == 500
        assert f"Checkpoint directory: {engine.root}" in engine.log
        assert "Using max model len 1000" in engine.log


def test_corrupt_cache(tmp_path: Path) -> None:
    with _faulty(tmp_path, "corrupt-cache") as engine:
        text = engine.ready().text("x")
    with Engine(tmp_path) as engine:
        assert engine.ready().text("x") == text
        assert engine.log.count("Failed to load cache for ") == 1
    with Engine(tmp_path) as engine:
        assert "Failed to load cache for " not in engine.ready().log


def test_wrong_cache_dir(tmp_path: Path) -> None:
    with _faulty(tmp_path, "wrong-cache-dir") as engine:
        engine.ready()
        assert f"Cache directory: {tmp_path}/cache-elsewhere/P300\n" in engine.log
        assert not (tmp_path / "cache").exists()
        assert len(list((tmp_path / "cache-elsewhere/P300/tensor_cache_bfp8").iterdir())) == 12


def test_stream_error(tmp_path: Path) -> None:
    with _faulty(tmp_path, "stream-error") as engine:
        engine.ready()
        events = engine.events({"prompt": "x", "max_tokens": 20, "ignore_eos": True})
        assert events[-1] == "[DONE]"
        assert events[-2]["error"]["code"] == 500
        assert 1 <= len(events[:-2]) <= 10
        assert all(event["choices"][0]["finish_reason"] is None for event in events[:-2])
        assert engine.complete("x")["usage"]["completion_tokens"] == 16


def test_stream_cut(tmp_path: Path) -> None:
    with _faulty(tmp_path, "stream-cut") as engine:
        engine.ready()
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            engine.events({"prompt": "x", "max_tokens": 20, "ignore_eos": True})
        assert engine.text("x")


def test_stream_differs(tmp_path: Path) -> None:
    with _faulty(tmp_path, "stream-differs") as engine:
        engine.ready()
        for prompt in ("x", "Repeat exactly: Xa"):
            assert joined(engine.events({"prompt": prompt})) != engine.text(prompt)
            assert engine.text(prompt) == engine.text(prompt)


def test_not_deterministic(tmp_path: Path) -> None:
    with _faulty(tmp_path, "not-deterministic") as engine:
        engine.ready()
        assert engine.text("x", max_tokens=8) != engine.text("x", max_tokens=8)


def test_no_stop(tmp_path: Path) -> None:
    with _faulty(tmp_path, "no-stop") as engine:
        whole = engine.ready().text("x")
        assert engine.text("x", stop=whole[3:6]) == whole


def test_bad_unicode(tmp_path: Path) -> None:
    with _faulty(tmp_path, "bad-unicode") as engine:
        engine.ready()
        assert engine.text("Repeat exactly: aé") == "a\ufffd\ufffd"
        assert joined(engine.events({"prompt": "Repeat exactly: aé"})) == "a\ufffd\ufffd"
        ids = engine.post("/tokenize", {"prompt": "aé"})[1]["tokens"]
        assert engine.post("/detokenize", {"tokens": ids})[1] == {"prompt": "a\ufffd\ufffd"}


def test_no_limit(tmp_path: Path) -> None:
    with _faulty(tmp_path, "no-limit", flags=("--max-model-len", "100")) as engine:
        engine.ready()
        assert engine.complete([7] * 101, max_tokens=300, ignore_eos=True)["usage"]["total_tokens"] == 401


def test_no_usage(tmp_path: Path) -> None:
    with _faulty(tmp_path, "no-usage") as engine:
        engine.ready()
        assert engine.complete("x")["usage"] is None
        options = {"include_usage": True, "continuous_usage_stats": True}
        events = engine.events({"prompt": "x", "stream_options": options})
        assert not any("usage" in event for event in events[:-1])
        assert events[-1] == "[DONE]"


def test_every_fault_is_tried_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    tried = {
        name for call in re.findall(r"_faulty\(tmp_path, (.*)", source) for name in re.findall(r'"([a-z-]+)', call)
    }
    assert {fault.name for fault in FAULTS} <= tried
