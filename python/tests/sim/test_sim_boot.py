from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sim_engine import Engine, free_port

from ttstack.sim import mesh as meshes
from ttstack.sim.errors import BootError
from ttstack.sim.model import make_model, read_config

_VLLM = r"^\((?:APIServer|EngineCore) pid=\d+\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[\w+\.py:\d+\] "
_METAL = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| info     \| +\w+ \| "
_LOGURU = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| INFO     \| [\w.]+:\w+:\d+ - "
_UVICORN = r"^INFO:     "

# The lines of a good boot in their order and in their source's format.
_BOOT = (
    (_VLLM, "Platform plugin tt is activated"),
    (_VLLM, "non-default args: {'model': "),
    (_VLLM, "Registered TT model TTSimForCausalLM -> "),
    (_VLLM, "Resolved architecture: SimForCausalLM"),
    (_VLLM, "Using max model len 4096"),
    (_VLLM, "Asynchronous scheduling is disabled."),
    (_VLLM, "Automatic prefix caching is disabled"),
    (_VLLM, "Chunked prefill is not supported for "),
    (_VLLM, "Initializing a V1 LLM engine (v0.25.1) with config: model='"),
    (_VLLM, "TT worker standard-DP binding: rank=0 TT_VISIBLE_DEVICES=None MESH_DEVICE=P150x2"),
    (_METAL, "Opening user mode device driver"),
    (_METAL, "Established firmware bundle version: 19.13.1"),
    (_METAL, "Opening local chip ids/PCIe ids: {0, 1}/[0, 1] and remote chip ids {}"),
    (_METAL, "IOMMU: enabled"),
    (_METAL, "KMD version: "),
    (_METAL, "Harvesting masks for Chip 0: "),
    (_METAL, "Harvesting masks for Chip 1: "),
    (_METAL, "Starting devices in cluster"),
    (_VLLM, "Attempting to open mesh device with grid shape (1, 2)"),
    (_VLLM, "Setting fabric config: FABRIC_1D, reliability mode: "),
    (_METAL, "Fabric initialized on 2 devices"),
    (_METAL, "Fabric Initialized with config FabricConfig::FABRIC_1D"),
    (_VLLM, "multidevice with 2 devices and grid (1, 2) is created"),
    (_VLLM, "TTModelRunner: trace_mode=all, sample_on_device_mode=None, enable_model_warmup=True"),
    (_LOGURU, "Inferring device name: P300"),
    (_LOGURU, "Checkpoint directory: "),
    (_LOGURU, "Cache directory: "),
    (_LOGURU, "Model name: model"),
    ("^", "Loading checkpoint shards: "),
    (_VLLM, "Using max_tokens_all_users=131072 "),
    (_VLLM, "Overriding num_gpu_blocks=2080 with num_gpu_blocks_override=2080"),
    (_VLLM, "GPU KV cache size: 133,120 tokens, Maximum concurrency for 4,096 tokens per request: 32.50x"),
    (_VLLM, "Allocating TT kv caches for each layer"),
    (_LOGURU, "Warming up prefill for sequence length: 128"),
    (_LOGURU, "Done Capturing Prefill Trace"),
    (_LOGURU, "Done Capturing Decode Trace"),
    (_VLLM, "init engine (profile, create kv cache, warmup model) took "),
    (_VLLM, "Scheduler class: TTScheduler, async_scheduling=False"),
    (_VLLM, "Starting vLLM API server 0 on http://127.0.0.1:"),
    (_VLLM, "Route: /health, Methods: GET"),
    (_UVICORN, "Started server process ["),
    (_UVICORN, "Application startup complete."),
)


def test_banners_in_order(tmp_path: Path) -> None:
    flags = ("--max-model-len", "4096", "--no-async-scheduling", "--no-enable-prefix-caching", "--disable-log-stats")
    with Engine(tmp_path, flags) as engine:
        lines = engine.ready().log.splitlines()
    at = 0
    for form, text in _BOOT:
        found = [number for number, line in enumerate(lines) if re.search(form + re.escape(text), line)]
        assert found, f"no line like {text!r} in its format"
        assert found[0] >= at, f"{text!r} comes too early"
        at = found[0]
    args = next(line for line in lines if "non-default args" in line)
    assert "'disable_log_stats': True" in args
    assert "sim_" not in args


@pytest.mark.parametrize(
    ("mesh", "visible", "shape"),
    [
        ("P150x2", None, (1, 2)),
        ("P150", "1", (1, 1)),
        ("P150", None, (1, 1)),
        ("", None, (1, 4)),
        (None, "0,3", (1, 2)),
        ("(2,2)", None, (2, 2)),
        ("P150x4", None, (1, 4)),
        ("P150x8", "3", (1, 1)),
        ("P150x2", "1, 0,1", (1, 2)),
    ],
)
def test_meshes(mesh: str | None, visible: str | None, shape: tuple[int, int]) -> None:
    devices = meshes.visible(visible, 4)
    assert meshes.shape(mesh, len(devices), restricted=visible is not None) == shape


def test_names_of_devices() -> None:
    assert [meshes.device_name(chips) for chips in (1, 2, 4, 8)] == ["P150", "P300", "P150x4", "P150x8"]


def test_the_chosen_card_is_the_one_that_is_open(tmp_path: Path) -> None:
    with Engine(tmp_path, env={"MESH_DEVICE": "P150", "TT_VISIBLE_DEVICES": "1"}) as engine:
        engine.ready()
        fds = Path(f"/proc/{engine.process.pid}/fd")
        nodes = [str(fd.readlink()) for fd in fds.iterdir() if "/dev/tenstorrent/" in str(fd.readlink())]
        assert nodes == [str(tmp_path / "host/dev/tenstorrent/1")]
        assert "multidevice with 1 devices and grid (1, 1) is created" in engine.log
        assert "Inferring device name: P150\n" in engine.log
        assert "abric" not in engine.log


@pytest.mark.parametrize("visible", ["2", "x", "0,7", "-1"])
def test_unknown_devices(visible: str) -> None:
    with pytest.raises(BootError, match=r"TT_THROW .* TT_VISIBLE_DEVICES names"):
        meshes.visible(visible, 2)


@pytest.mark.parametrize("mesh", ["P150X2", "p150", "(0,2)", "(1,2", "2"])
def test_unknown_meshes(mesh: str) -> None:
    with pytest.raises(BootError, match="Invalid MESH_DEVICE"):
        meshes.shape(mesh, 2, restricted=False)


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"TTX_SIM_DEV": "/nowhere"}, "TT_FATAL @ tt_cluster.cpp:129: num_chips > 0"),
        ({"TT_VISIBLE_DEVICES": ""}, "No chips detected in the cluster"),
        ({"MESH_DEVICE": "P150x4"}, "Mesh of 4 devices was asked for, 2 are there"),
    ],
)
def test_no_such_devices(tmp_path: Path, env: dict[str, str], told: str) -> None:
    with Engine(tmp_path, env=env) as engine:
        assert engine.exit_code() == 1
        assert "EngineCore failed to start." in engine.log
        assert told in engine.log
        assert "Application startup complete." not in engine.log


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (None, "Can't load the configuration"),
        ("{", "Can't load the configuration"),
        ("[]", "Can't load the configuration"),
        ('{"max_position_embeddings": "x"}', "max_position_embeddings of"),
        ('{"num_hidden_layers": 0}', "num_hidden_layers of"),
        ('{"sim_tensor_bytes": true}', "sim_tensor_bytes of"),
    ],
)
def test_bad_configurations(tmp_path: Path, config: str | None, told: str) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(BootError, match=told):
        read_config(str(tmp_path))


@pytest.mark.parametrize(
    ("flags", "told"),
    [(("--max-model-len", "65"), "max_model_len (65) is greater than"), ((), "Cannot find any model weights with")],
)
def test_bad_checkpoints(tmp_path: Path, flags: tuple[str, ...], told: str) -> None:
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 64}')
    with Engine(tmp_path, flags, root=str(tmp_path)) as engine:
        assert engine.exit_code() == 1
        assert told in engine.log
        assert "EngineCore failed to start." in engine.log


def test_the_context_s_length_is_the_checkpoint_s(tmp_path: Path) -> None:
    root = make_model(tmp_path / "short", max_len=333)
    with Engine(tmp_path, root=str(root)) as engine:
        engine.ready()
        assert json.loads(engine.get("/v1/models")[1])["data"][0]["max_model_len"] == 333


def test_503_until_ready(tmp_path: Path) -> None:
    port = free_port()
    with Engine(tmp_path, ("--port", str(port), "--sim-fault", "hang:warmup")) as engine:
        engine.wait_for("Allocating TT kv caches")
        engine.port = port
        for path in ("/health", "/v1/models", "/nothing"):
            assert engine.get(path)[0] == 503
        assert engine.post("/v1/completions", {"prompt": "x"})[0] == 503
        assert engine.stop() == 0


def test_a_port_in_use(tmp_path: Path, live: Engine) -> None:
    with Engine(tmp_path, ("--port", str(live.port))) as engine:
        assert engine.exit_code() == 1
        assert "address already in use" in engine.log.lower()
    assert live.get("/health")[0] == 200


def test_waits_for_a_card_that_another_process_has(tmp_path: Path) -> None:
    with Engine(tmp_path) as first, Engine(tmp_path, env={"MESH_DEVICE": "P150"}) as second:
        # Whichever came first has the card; the other one waits for it and names it.
        holder, waiter = _sort(first, second)
        text = (
            f"Waiting for lock 'CHIP_IN_USE_0_PCIe' which is currently held by thread TID: {holder.process.pid}, PID: "
        )
        waiter.wait_for(text)
        assert waiter.process.poll() is None
        assert "Application startup complete." not in waiter.log
        assert holder.stop() == 0
        waiter.ready()


def _sort(first: Engine, second: Engine) -> tuple[Engine, Engine]:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for holder, waiter in ((first, second), (second, first)):
            if "Application startup complete." in holder.log:
                return holder, waiter
        time.sleep(0.005)
    raise AssertionError(first.log, second.log)


def test_a_lock_of_nobody_known_is_waited_for_too(tmp_path: Path) -> None:
    with Engine(tmp_path) as engine:
        engine.ready()
        with (tmp_path / "host/dev/tenstorrent/0").open() as node, pytest.raises(BlockingIOError):
            fcntl.flock(node, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert engine.stop() == 0
        with (tmp_path / "host/dev/tenstorrent/0").open() as node:
            fcntl.flock(node, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_boot_takes_its_time(tmp_path: Path) -> None:
    with Engine(tmp_path, ("--sim-boot-ms", "200")) as engine:
        engine.ready()
        lines = engine.log.splitlines()
    stamps = [re.match(r"[\d-]+ (\d\d):(\d\d):(\d\d\.\d+) \|", line) for line in lines]
    seconds = [int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3]) for found in stamps if found]
    # From the first line of tt-metal to its last lie device, mesh, model, cache and kv: 0.82 of the boot.
    assert (seconds[-1] - seconds[0]) % 86400 >= 0.15


def test_a_reader_that_goes_away_does_not_stop_the_engine(tmp_path: Path) -> None:
    with Engine(tmp_path) as probe:
        command, cwd = probe.process.args, probe.folder
        probe.ready()
        env = {"PYTHONPATH": ":".join(sys.path), "TTX_SIM_DEV": "/nowhere"}
        assert isinstance(command, list)
        other = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cwd, env=env)
        assert other.stdout is not None
        other.stdout.close()
        # It goes on to the fault of its devices, rather than die of SIGPIPE or of an error while printing.
        assert other.wait(20) == 1


def test_a_bad_command_line_exits_2(tmp_path: Path) -> None:
    with Engine(tmp_path, ("--sim-fault", "die:lunch")) as engine:
        assert engine.exit_code() == 2
        assert engine.log.startswith("ttx-sim: error: --sim-fault die: 'lunch' is not a step of the boot\n")


def test_help() -> None:
    command = [sys.executable, "-m", "ttstack.sim", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert "--sim-prefill-rate" in done.stdout
