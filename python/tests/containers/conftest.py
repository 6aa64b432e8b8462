from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from containers_kit import Host

from ttstack.sim.model import make_model

if TYPE_CHECKING:
    from collections.abc import Iterator

PINS = Path(__file__).resolve().parents[3] / "pins"
MODELS = 'schema = 1\n[tiny]\npath = "../model"\nserved_name = "tiny"\nrevision = "local"\ncache_gb = 0.001\n'


def make_base(base: Path) -> Path:
    shutil.copytree(PINS, base / "pins")
    (base / "arms").mkdir()
    (base / "arms" / "models.toml").write_text(MODELS)
    make_model(base / "model", max_len=2048)
    return base


@pytest.fixture
def bare_host(tmp_path: Path) -> Host:
    return Host(make_base(tmp_path))


@pytest.fixture
def host(bare_host: Host, sim_image: str) -> Iterator[Host]:
    assert sim_image
    if os.geteuid() != 0:
        pytest.skip("only root makes device nodes")
    bare_host.make_nodes()
    yield bare_host
    bare_host.end_all()
