"""The boot: its steps in order, with what each does and prints."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.sim import devices as nodes
from ttstack.sim import mesh, steps
from ttstack.sim.errors import BootError
from ttstack.sim.faults import STEPS
from ttstack.sim.load import Loader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.sim.banners import Log
    from ttstack.sim.flags import Settings
    from ttstack.sim.model import Checkpoint

# Share of sim-boot-ms that a step takes; the cache has its share from Loader, file by file.
_SHARES = {"plugin": 0.03, "engine": 0.05, "device": 0.1, "mesh": 0.07, "model": 0.05, "kv": 0.05, "warmup": 0.15}
_CACHE_SHARE = 0.5
_MAX_TOKENS_ALL_USERS = 131072  # the plugin's default


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a finished boot has made. ``fingerprint``: digest of the tensors as they were loaded."""

    fingerprint: bytes
    max_model_len: int
    kv_blocks: int


class Boot:
    """One boot of one engine."""

    def __init__(self, settings: Settings, env: Mapping[str, str], log: Log) -> None:
        self.settings = settings
        self.env = env
        self.log = log
        self.devices = nodes.Devices()
        self.shape = (1, 1)
        self.checkpoint: Checkpoint | None = None
        self.fingerprint = b""

    @property
    def chips(self) -> int:
        """Number of chips in the mesh."""
        return self.shape[0] * self.shape[1]

    @property
    def model(self) -> Checkpoint:
        """The checkpoint's configuration, known from step ``arch`` on."""
        if self.checkpoint is None:
            raise BootError("RuntimeError: the checkpoint was not read")
        return self.checkpoint

    @property
    def max_model_len(self) -> int:
        """Context length in tokens, known from step ``arch`` on."""
        return self.settings.max_model_len or self.model.max_len

    @property
    def kv_blocks(self) -> int:
        """Blocks of the KV cache: vllm-tt-plugin's max_tokens_all_users plus a block for each sequence."""
        block = self.settings.block_size
        return -(-_MAX_TOKENS_ALL_USERS // block) + self.settings.max_num_seqs

    async def run(self) -> Loaded:
        """Take every step but ``ready``. Raises BootError."""
        for step in STEPS[:-1]:
            await self.begin(step)
            await self._take(step)
            await asyncio.sleep(self.settings.timing.boot_ms * _SHARES.get(step, 0) / 1000)
        return Loaded(self.fingerprint, self.max_model_len, self.kv_blocks)

    async def begin(self, step: str) -> None:
        """Carry out the faults of a step. Raises BootError."""
        faults = self.settings.faults
        if step in faults.args("hang"):
            await asyncio.Event().wait()
        if step in faults.args("die"):
            raise BootError(f"RuntimeError: the simulated engine was told to die at step {step}")

    async def _take(self, step: str) -> None:
        if step == "device":
            await self._open_devices()
        elif step == "cache":
            await self._load_cache()
        else:
            steps.PRINT[step](self)

    async def _open_devices(self) -> None:
        there = nodes.present(Path(self.env.get("TTX_SIM_DEV") or "/dev/tenstorrent"))
        setting = self.env.get("TT_VISIBLE_DEVICES")
        chosen = [there[at] for at in mesh.visible(setting, len(there))]
        self.log.metal("Device", "tt_cluster.cpp:188", "Opening user mode device driver")
        if "hang-lock" in self.settings.faults:
            self._umd(nodes.waiting(0, 1), "warning")
            await asyncio.Event().wait()
        restricted = setting is not None
        if chosen:
            self.shape = mesh.shape(self.env.get("MESH_DEVICE"), len(chosen), restricted=restricted)
        await self.devices.open(chosen[: self.chips], lambda text: self._umd(text, "warning"))
        steps.devices_opened(self)

    def _umd(self, text: str, level: str = "info") -> None:
        self.log.metal("UMD", "lock_manager.cpp:92", text, level)

    async def _load_cache(self) -> None:
        loader = Loader(
            settings=self.settings,
            env=self.env,
            log=self.log,
            shape=self.shape,
            checkpoint=self.model,
            pause_s=self.settings.timing.boot_ms * _CACHE_SHARE / 1000,
        )
        self.fingerprint = await loader.load()


def failure(log: Log, error: BootError) -> None:
    """Print what vLLM prints when its engine process cannot start."""
    log.vllm("EngineCore", "core.py:946", "EngineCore failed to start.", "ERROR")
    log.vllm("EngineCore", "core.py:946", "Traceback (most recent call last):", "ERROR")
    for line in error.detail:
        log.vllm("EngineCore", "core.py:946", line, "ERROR")
    text = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    log.line(f"(APIServer pid={os.getpid()}) {text}")
