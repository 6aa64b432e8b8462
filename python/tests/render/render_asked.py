"""What the tests of the room render: hand-built, so that no arm file can change what is expected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.arm.types import Arm, Asked, Cards, Engine, Expect, Model, Overlay, Pin, Wheel
from ttstack.host.types import Card

if TYPE_CHECKING:
    from collections.abc import Sequence

PROD = Asked(
    arm=Arm(
        name="prod",
        file=Path("/etc/ttx/arms/prod.toml"),
        description="what production serves, at 100%",
        pin="current",
        model="qwen3.6-27b",
        engine=Engine(
            kind="vllm",
            runtime="docker",
            port=8000,
            host="127.0.0.1",
            args={
                "max-model-len": 65536,
                "max-num-seqs": 32,
                "block-size": 64,
                "async-scheduling": False,
                "enable-prefix-caching": False,
                "gpu-memory-utilization": 0.9,
            },
            tt={"trace_mode": "all", "fabric_config": "FABRIC_1D", "trace_region_size": 900000000},
            secrets=("HF_TOKEN",),
            boot_timeout_s=5400,
            stop_grace_s=120,
        ),
        cards=Cards(count=2, ids=(), mesh="P150x2"),
        env={"QWEN_PRICE": "100% of $5", "TT_LOGGER_LEVEL": "info"},
        weights_env={"QWEN_W4": "1"},
        overlays=(Overlay(Path("/srv/src/qwen36"), "models/demos/qwen36"),),
        expect=Expect(banners=(), served_root="checkpoint", max_model_len=65536),
    ),
    pin=Pin(
        name="current",
        file=Path("/etc/ttx/pins/current.toml"),
        description="",
        image="registry.example/tt/qwen@sha256:" + "ab" * 32,
        home="/opt/tt-metal",
        wheel=Wheel("ttnn", "0.81.1", "cp310", "00" * 32),
        tt_metal="",
        vllm="0.25.1",
        plugin="",
        cache_writes_by_rename=True,
    ),
    model=Model(
        name="qwen3.6-27b",
        hf="Qwen/Qwen3.6-27B",
        path="/srv/models/qwen3.6-27b",
        revision="0123abcd",
        served_name="qwen3.6-27b",
        cache_gb=30.0,
        env={"QWEN_FUSED": "1"},
        weights_env=("QWEN_W8",),
    ),
)

CARDS = (
    Card("/dev/tenstorrent/1", 1, "0000:01:00.0", "0000036110007711", "0b1a5000000000a1", "p150a"),
    Card("/dev/tenstorrent/0", 0, "0000:41:00.0", "0000036110007722", "0b1a5000000000b2", "p150a"),
)


def with_arm(asked: Asked = PROD, **changes: object) -> Asked:
    return replace(asked, arm=replace(asked.arm, **changes))


def with_engine(asked: Asked = PROD, **changes: object) -> Asked:
    return with_arm(asked, engine=replace(asked.arm.engine, **changes))


def with_cards(count: int, ids: Sequence[str] = (), asked: Asked = PROD) -> Asked:
    return with_arm(asked, cards=replace(asked.arm.cards, count=count, ids=tuple(ids)))


def with_model(asked: Asked = PROD, **changes: object) -> Asked:
    return replace(asked, model=replace(asked.model, **changes))


def as_process(asked: Asked = PROD) -> Asked:
    return with_engine(with_arm(asked, overlays=()), kind="sim", runtime="process", host="127.0.0.1")
