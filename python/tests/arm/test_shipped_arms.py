"""The arms, pins and models that come with the project mean what they are meant to."""

from __future__ import annotations

import json

import pytest
from arm_kit import ROOT

from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf, arm_names, pin_names

SHELF = Shelf(ROOT / "arms", ROOT / "pins")


def test_which_there_are() -> None:
    # At least: who adds an arm or a pin must not have to touch a test.
    assert {"prod", "prod-prefix", "sim", "sim-docker", "sim-pair", "tp1-a", "tp1-b"} <= set(arm_names(SHELF))
    assert {"current", "sim", "sim-image"} <= set(pin_names(SHELF))


def test_production() -> None:
    asked = load("prod", SHELF)
    arm, engine = asked.arm, asked.arm.engine
    assert (engine.kind, engine.runtime, engine.port, engine.host) == ("vllm", "docker", 8000, "127.0.0.1")
    assert engine.args == {
        "max-model-len": 65536,
        "max-num-seqs": 32,
        "block-size": 64,
        "async-scheduling": False,
    }
    assert engine.tt == {"trace_mode": "all", "fabric_config": "FABRIC_1D"}
    assert (arm.cards.count, arm.cards.mesh, arm.overlays) == (2, "P150x2", ())
    # max_tokens_all_users 131072 / 64 + 32 users = 2080 blocks of 64 tokens (vllm-tt-plugin)
    assert f"re:GPU KV cache size: {(131072 // 64 + 32) * 64:,} tokens" in arm.expect.banners
    assert asked.model.hf == "Qwen/Qwen3.6-27B"
    assert asked.pin.image.startswith("tt-serve:")
    assert asked.pin.cache_format == "ttnn-0.81.1"


def test_the_prefix_variant_differs_in_one_flag() -> None:
    prod, prefix = load("prod", SHELF).arm, load("prod-prefix", SHELF).arm
    assert prefix.engine.args == {**prod.engine.args, "enable-prefix-caching": True}
    assert (prefix.engine.tt, prefix.cards, prefix.env, prefix.expect) == (prod.engine.tt, prod.cards, {}, prod.expect)
    lines = [
        line for line in (ROOT / "arms" / "prod-prefix.toml").read_text().splitlines() if line[:1] not in {"", "#"}
    ]
    assert len(lines) <= 4


def test_two_arms_of_one_card_can_run_side_by_side() -> None:
    first, second = (load(name, SHELF).arm for name in ("tp1-a", "tp1-b"))
    assert (first.cards.count, first.cards.mesh) == (second.cards.count, second.cards.mesh) == (1, "P150")
    assert (first.engine.port, second.engine.port) == (8001, 8002)
    assert first.engine.args == second.engine.args


@pytest.mark.parametrize(("name", "count", "port"), [("sim", 1, 18000), ("sim-pair", 2, 18001)])
def test_the_simulated_arms(name: str, count: int, port: int) -> None:
    asked = load(name, SHELF)
    assert (asked.arm.engine.kind, asked.arm.engine.runtime) == ("sim", "process")
    assert (asked.arm.cards.count, asked.arm.engine.port) == (count, port)
    assert asked.arm.expect.banners[0] == f"multidevice with {count} devices and grid (1, {count}) is created"
    folder = ROOT / "arms" / "sim-tiny"
    assert asked.model.root == str(folder)
    config = json.loads((folder / "config.json").read_text())
    assert config["max_position_embeddings"] == asked.arm.expect.max_model_len == 8192
    assert 100 < len((folder / "weights.sim").read_bytes()) < 1000
    assert asked.pin.cache_format == "sim"
