"""The arm of tests that run the simulated engine: quick, on a free port, with the faults that are wanted."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from ttstack.sim.model import make_model

if TYPE_CHECKING:
    from pathlib import Path

ARM = """\
schema = 1
description = "a quick simulated engine"
pin = "{pin}"
model = "tiny"
[engine]
kind = "sim"
runtime = "{runtime}"
port = {port}
boot_timeout_s = {boot_timeout_s}
stop_grace_s = {stop_grace_s}
[engine.args]
max-model-len = 2048
max-num-seqs = 8
sim-boot-ms = {boot_ms}
sim-teardown-ms = 10
sim-prefill-rate = 0
sim-token-ms = 0
{args}
[cards]
{cards}
[expect]
banners = ["re:multidevice with [0-9] devices", "re:GPU KV cache size: [0-9,]+ tokens"]
max_model_len = 2048
"""
MODELS = 'schema = 1\n[tiny]\npath = "../model"\nserved_name = "tiny"\nrevision = "local"\ncache_gb = 0.001\n'
PINS = {"process": "sim", "docker": "sim-image", "podman": "sim-image"}


def free_port() -> int:
    """Find a port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_shelf(base: Path) -> None:
    """Make the folder of arms, the catalogue in it, and the model that it names."""
    (base / "arms").mkdir()
    (base / "arms" / "models.toml").write_text(MODELS)
    make_model(base / "model", max_len=2048)


def write_arm(
    base: Path, name: str, *faults: str, cards: str = "count = 1", own_cache: bool = False, **more: object
) -> Path:
    """Write an arm's file; ``more`` are the fields of ``ARM``. All arms have one cache but those with ``own_cache``."""
    given = {"runtime": "process", "boot_timeout_s": 20, "stop_grace_s": 5, "boot_ms": 40, **more}
    args = f"sim-fault = {json.dumps(faults)}" if faults else ""
    pin = PINS[str(given["runtime"])]
    path = base / "arms" / f"{name}.toml"
    text = ARM.format(**{"port": free_port(), "pin": pin, "args": args, "cards": cards, **given})
    path.write_text(f'{text}[env.weights]\nTTX_TEST_BF4 = "{name}"\n' if own_cache else text)
    return path
