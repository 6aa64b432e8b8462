"""A person at a desk, who types ``ttx cache``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.arm.key import CacheKey, cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.cli.main import main
from ttstack.errors import Exit

if TYPE_CHECKING:
    import pytest

    from ttstack.arm.types import Asked

PROJECT = Path(__file__).resolve().parents[3]
MODELS = """\
schema = 1
[one]
hf = "org/one"
path = "{model}"
cache_gb = 1
[bare]
hf = "org/bare"
revision = "main"
cache_gb = 1
"""
FIRST = "P150/layers.0_dtype_BFLOAT8_B_layout_TILE.tensorbin"


@dataclass
class Desk:
    """A host with no cards and no engines, and what ttx says there."""

    root: Path
    simulated: Path
    shelf: Shelf
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def ttx(self, *words: str, code: Exit = Exit.DONE) -> str:
        got = main(["--arms", str(self.shelf.arms), "cache", *words])
        out, self.err = self.capsys.readouterr()
        assert got == code, f"{out}\n{self.err}"
        return out

    def json(self, *words: str, code: Exit = Exit.DONE) -> Any:  # noqa: ANN401 - what it prints
        return json.loads(self.ttx(*words, "--json", code=code))

    def asked(self, name: str) -> Asked:
        return load(name, self.shelf)

    def key(self, name: str) -> CacheKey:
        return cache_key(self.asked(name))


def make_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    for name in ("state", "cache", "locks"):
        monkeypatch.setenv(f"TTX_{name.upper()}", str(tmp_path / name))
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("w")
    arms = tmp_path / "arms"
    arms.mkdir()
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins/current.toml").write_text((PROJECT / "pins/current.toml").read_text())
    (arms / "models.toml").write_text(MODELS.format(model=model))
    arm = 'schema = 1\npin = "current"\nmodel = "{}"\n[engine]\nkind = "vllm"\nport = {}\n[cards]\ncount = 1\n{}'
    (arms / "try.toml").write_text(arm.format("one", 8001, ""))
    (arms / "env.toml").write_text(arm.format("one", 8002, '[env.weights]\nMLP_BF4 = "1"\n'))
    (arms / "bare.toml").write_text(arm.format("bare", 8003, ""))
    return Desk(tmp_path / "cache", tmp_path / "state/sim-host/cache", Shelf(arms, tmp_path / "pins"), capsys)


def columns(text: str) -> list[list[str]]:
    head, *lines = text.splitlines()
    starts = [head.index(name) for name in ("CACHE", "STATE", "SIZE", "ARM", "USED", "WHAT")]
    return [[line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
