"""The process: boot, serve, teardown."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from ttstack.sim import steps
from ttstack.sim.api import Api
from ttstack.sim.banners import Log
from ttstack.sim.boot import Boot, failure
from ttstack.sim.errors import BootError
from ttstack.sim.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.sim.flags import Settings

_LINGER_S = 0.3  # from the engine's death to the end of the server, which vLLM's watchdog brings about


class Engine:
    """One engine, from its first line to its exit."""

    def __init__(self, settings: Settings, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._env = env
        self._log = Log(settings.faults.args("missing-banner"))
        self._boot = Boot(settings, env, self._log)
        self._api = Api(settings, self._access)
        self._api.answered = self._count
        self._schedule: Schedule | None = None
        self._stop = asyncio.Event()
        self._died = asyncio.Event()

    async def run(self) -> int:
        """Run to the end; return the exit code."""
        self._catch_signals()
        life = asyncio.create_task(self._live())
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({life, stop}, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            self._api.close()
            self._boot.devices.close()
            return life.result()
        life.cancel()
        await self._tear_down()
        return 0

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        # Set for good: a second signal does not shorten the teardown.
        loop.add_signal_handler(signal.SIGINT, self._stop.set)
        if "ignore-sigterm" in self._settings.faults:
            loop.add_signal_handler(signal.SIGTERM, lambda: None)
        else:
            loop.add_signal_handler(signal.SIGTERM, self._stop.set)

    async def _live(self) -> int:
        try:
            port = await self._listen()
            loaded = await self._boot.run()
            await self._boot.begin("ready")
        except BootError as error:
            failure(self._log, error)
            return 1
        self._schedule = Schedule(self._settings, loaded.kv_blocks)
        self._api.open(loaded, self._schedule)
        steps.ready(self._boot, port)
        self._count(0)
        await self._died.wait()
        self._log.vllm("APIServer", "launcher.py:110", "The engine is dead; shutting down the server", "ERROR")
        return 1

    async def _listen(self) -> int:
        settings = self._settings
        if "silent-port" in settings.faults:
            return settings.port
        try:
            return await self._api.listen(settings.host, settings.port)
        except OSError as error:
            raise BootError(f"OSError: {error}") from error

    def _access(self, text: str) -> None:
        if self._settings.access_log:
            self._log.uvicorn(text)

    def _count(self, served: int) -> None:
        """Carry out die-serving."""
        limits = [int(text) for text in self._settings.faults.args("die-serving")]
        if self._schedule is None or self._schedule.dead or not limits or served < min(limits):
            return
        self._schedule.dead = True
        text = "EngineCore encountered a fatal error."
        self._log.vllm("EngineCore", "core.py:1019", text, "ERROR")
        # vLLM keeps the server when this is set; clients then see what a dead engine answers.
        if self._env.get("VLLM_KEEP_ALIVE_ON_ENGINE_DEATH", "0") in {"", "0"}:
            asyncio.get_running_loop().call_later(_LINGER_S, self._died.set)

    async def _tear_down(self) -> None:
        self._log.uvicorn("Shutting down")
        self._api.close()
        opened = len(self._boot.devices)
        if opened:
            for chip in range(opened):
                self._log.metal("Metal", "device.cpp:612", f"Closing device {chip}")
            await asyncio.sleep(self._settings.timing.teardown_ms / 1000)
            self._boot.devices.close()
            self._log.metal("Device", "tt_cluster.cpp:310", "Closing user mode device drivers")
        self._log.uvicorn("Application shutdown complete.")
        self._log.uvicorn(f"Finished server process [{os.getpid()}]")


def run(settings: Settings, env: Mapping[str, str]) -> int:
    """Run one engine; return its exit code."""

    async def main() -> int:
        return await Engine(settings, env).run()

    return asyncio.run(main())
