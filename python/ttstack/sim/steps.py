"""What the steps of the boot print; texts as vLLM 0.25, vllm-tt-plugin, tt-metal and tt_transformers have them."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from ttstack.sim import banners, jit, load, mesh
from ttstack.sim.errors import BootError
from ttstack.sim.model import read_config
from ttstack.sim.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ttstack.sim.boot import Boot


def _plugin(boot: Boot) -> None:
    boot.log.vllm("APIServer", "__init__.py:38", "Available plugins for group vllm.platform_plugins:")
    boot.log.vllm("APIServer", "__init__.py:207", "Platform plugin tt is activated")


def _args(boot: Boot) -> None:
    boot.log.vllm("APIServer", "api_server.py:1977", f"vLLM API server version {banners.VLLM_VERSION}")
    boot.log.vllm("APIServer", "utils.py:273", f"non-default args: {dict(boot.settings.given)}")


def _arch(boot: Boot) -> None:
    model = boot.checkpoint = read_config(boot.settings.root)
    asked = boot.settings.max_model_len
    if asked is not None and asked > model.max_len:
        raise BootError(
            f"ValueError: User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={model.max_len} in model's config.json).",
        )
    name = model.architecture
    target = "models.tt_transformers.tt.generator_vllm:SimForCausalLM"
    boot.log.vllm(
        "APIServer", "registry.py:88", f"Registered TT model TT{name} -> {target} (from EXTRA_MODELS_DIR/sim)"
    )
    boot.log.vllm("APIServer", "model.py:541", f"Resolved architecture: {name}")
    boot.log.vllm("APIServer", "model.py:1561", f"Using max model len {boot.max_model_len}")
    on = "enabled" if boot.settings.async_scheduling else "disabled"
    boot.log.vllm("APIServer", "vllm.py:624", f"Asynchronous scheduling is {on}.")
    on = "enabled" if boot.settings.prefix_caching else "disabled"
    boot.log.vllm("APIServer", "platform.py:214", f"Automatic prefix caching is {on}")
    boot.log.vllm("APIServer", "platform.py:231", f"Chunked prefill is not supported for TT{name}; disabling it.")


def _engine(boot: Boot) -> None:
    settings = boot.settings
    config = (
        f"model='{settings.root}', tokenizer='{settings.root}', revision=None, dtype=torch.bfloat16, "
        f"max_seq_len={boot.max_model_len}, device_config=tt, seed={settings.seed}, "
        f"served_model_name={settings.names[0]}, enable_prefix_caching={settings.prefix_caching}"
    )
    text = f"Initializing a V1 LLM engine (v{banners.VLLM_VERSION}) with config: {config}"
    boot.log.vllm("EngineCore", "core.py:93", text)


def _binding(boot: Boot) -> None:
    visible = boot.env.get("TT_VISIBLE_DEVICES")
    text = (
        f"TT worker standard-DP binding: rank=0 TT_VISIBLE_DEVICES={visible} MESH_DEVICE={boot.env.get('MESH_DEVICE')}"
    )
    boot.log.vllm("EngineCore", "tt_worker.py:173", text)


def devices_opened(boot: Boot) -> None:
    """Print what UMD tells once the chips are open."""
    chips = list(range(boot.chips))
    ids = "{" + ", ".join(map(str, chips)) + "}"
    boot.log.metal("UMD", "topology_discovery.cpp:372", "Established firmware bundle version: 19.13.1")
    text = f"Opening local chip ids/PCIe ids: {ids}/{chips} and remote chip ids {{}}"
    boot.log.metal("UMD", "cluster.cpp:249", text)
    boot.log.metal("UMD", "cluster.cpp:157", "IOMMU: enabled")
    boot.log.metal("UMD", "cluster.cpp:163", "KMD version: 2.10.1")
    for chip in chips:
        text = f"Harvesting masks for Chip {chip}: tensix: 0xc0 dram: 0x0 eth: 0x120 pcie: 0x2 l2cpu: 0x0"
        boot.log.metal("UMD", "cluster.cpp:318", text)
    boot.log.metal("UMD", "cluster.cpp:1022", "Starting devices in cluster")


def _mesh(boot: Boot) -> None:
    rows, columns = boot.shape
    boot.log.vllm(
        "EngineCore", "tt_worker.py:512", f"Attempting to open mesh device with grid shape ({rows}, {columns})"
    )
    fabric = boot.settings.tt.get("fabric_config", "FABRIC_1D" if boot.chips > 1 else None)
    if fabric is not None:
        mode = boot.settings.tt.get("fabric_reliability_mode", "STRICT_INIT")
        text = f"Setting fabric config: {fabric}, reliability mode: {mode}"
        boot.log.vllm("EngineCore", "tt_worker.py:498", text)
        boot.log.metal("Fabric", "control_plane.cpp:1731", f"Fabric initialized on {boot.chips} devices")
        text = f"Fabric Initialized with config FabricConfig::{fabric}"
        boot.log.metal("Metal", "device_manager.cpp:402", text)
    text = f"multidevice with {boot.chips} devices and grid ({rows}, {columns}) is created"
    boot.log.vllm("EngineCore", "tt_worker.py:529", text)


def _runner(boot: Boot) -> None:
    for text in jit.lines(jit.compile_kernels(boot.env, boot.shape)):
        boot.log.metal("BuildKernels", "build.cpp:291", text)
    tt = boot.settings.tt
    text = (
        f"TTModelRunner: trace_mode={tt.get('trace_mode', 'all')}, "
        f"sample_on_device_mode={tt.get('sample_on_device_mode')}, "
        f"enable_model_warmup={tt.get('enable_model_warmup', True)}"
    )
    boot.log.vllm("EngineCore", "tt_model_runner.py:140", text)


def _model(boot: Boot) -> None:
    where = "models.tt_transformers.tt.model_config:__init__"
    precision = boot.settings.tt.get("optimizations", "performance")
    for line, text in (
        (488, f"Inferring device name: {mesh.device_name(boot.chips)}"),
        (509, f"Checkpoint directory: {boot.settings.root}"),
        (510, f"Tokenizer directory: {boot.settings.root}"),
        (511, f"Cache directory: {load.folder(boot.settings, boot.env, boot.shape)}"),
        (512, f"Model name: {boot.settings.root.rstrip('/').rpartition('/')[2]}"),
        (540, f"Precision config: {precision}_decoder_config.json"),
    ):
        boot.log.loguru(f"{where}:{line}", text)
    boot.log.line("Loading checkpoint shards: 100%|##########| 1/1 [00:00<00:00,  1.00it/s]")


def _kv(boot: Boot) -> None:
    settings, blocks = boot.settings, boot.kv_blocks
    tokens, length = blocks * settings.block_size, boot.max_model_len
    text = f"Using max_tokens_all_users={(blocks - settings.max_num_seqs) * settings.block_size} for the KV cache"
    boot.log.vllm("EngineCore", "tt_worker.py:231", text)
    text = f"Overriding num_gpu_blocks={blocks} with num_gpu_blocks_override={blocks}"
    boot.log.vllm("EngineCore", "kv_cache_utils.py:1041", text)
    text = (
        f"GPU KV cache size: {tokens:,} tokens, "
        f"Maximum concurrency for {length:,} tokens per request: {tokens / length:.2f}x"
    )
    boot.log.vllm("EngineCore", "kv_cache_utils.py:1305", text)
    boot.log.vllm("EngineCore", "tt_model_runner.py:262", "Allocating TT kv caches for each layer")


def _warmup(boot: Boot) -> None:
    trace = boot.settings.tt.get("trace_mode", "all")
    where = "models.tt_transformers.tt.generator"
    for length in (128, 1024):
        boot.log.loguru(f"{where}:warmup_model_prefill:101", f"Warming up prefill for sequence length: {length}")
    if trace == "all":
        boot.log.loguru(f"{where}:_capture_trace_prefill:167", "Done Capturing Prefill Trace")
    if trace in {"all", "decode_only"}:
        boot.log.loguru(f"{where}:_capture_decode_trace_text:742", "Done Capturing Decode Trace")
    took = boot.settings.timing.boot_ms / 1000
    text = f"init engine (profile, create kv cache, warmup model) took {took:.2f} seconds"
    boot.log.vllm("EngineCore", "core.py:259", text)
    text = f"Scheduler class: TTScheduler, async_scheduling={boot.settings.async_scheduling}"
    boot.log.vllm("EngineCore", "core.py:140", text)


def ready(boot: Boot, port: int) -> None:
    """Print the last lines of a good boot."""
    text = f"Starting vLLM API server 0 on http://{boot.settings.host}:{port}"
    boot.log.vllm("APIServer", "api_server.py:1346", text)
    boot.log.vllm("APIServer", "launcher.py:38", "Available routes are:")
    for path, methods in ROUTES.items():
        boot.log.vllm("APIServer", "launcher.py:46", f"Route: {path}, Methods: {', '.join(methods)}")
    boot.log.uvicorn(f"Started server process [{os.getpid()}]")
    boot.log.uvicorn("Waiting for application startup.")
    boot.log.uvicorn("Application startup complete.")


PRINT: Mapping[str, Callable[[Boot], None]] = MappingProxyType(
    {
        "plugin": _plugin,
        "args": _args,
        "arch": _arch,
        "engine": _engine,
        "binding": _binding,
        "mesh": _mesh,
        "runner": _runner,
        "model": _model,
        "kv": _kv,
        "warmup": _warmup,
    }
)
