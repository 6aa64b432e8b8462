from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from containers_kit import Host
from fake_docker import FakeDocker
from podman_kit import UnusableError, own_podman
from quick_arm import make_shelf
from stand_in_nodes import stand_in_nodes

from ttstack.run import containers as containers_module
from ttstack.run import follow as follow_module
from ttstack.run.state import RunFolder, run_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stand_in_nodes import Numbers

PINS = Path(__file__).resolve().parents[3] / "pins"


def make_base(base: Path) -> Path:
    shutil.copytree(PINS, base / "pins")
    make_shelf(base)
    return base


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    made = FakeDocker(tmp_path)
    monkeypatch.setenv("PATH", made.path())
    for module in (containers_module, follow_module):
        monkeypatch.setattr(module, "_AGAIN_S", 0.0)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = run_folder(tmp_path / "state", "R")
    made.path.mkdir(parents=True)
    return made


@pytest.fixture(scope="session")
def node_numbers() -> Iterator[Numbers]:
    if os.geteuid() != 0:
        pytest.skip("only root makes device nodes")
    with stand_in_nodes(4) as numbers:
        yield numbers


@pytest.fixture
def host(tmp_path: Path, sim_image: str, node_numbers: Numbers) -> Iterator[Host]:
    assert sim_image
    yield from _host(Host(make_base(tmp_path), numbers=node_numbers[:2]))


@pytest.fixture
def wide_host(tmp_path: Path, sim_image: str, node_numbers: Numbers) -> Iterator[Host]:
    """One with as many cards as there are stand-ins for."""
    assert sim_image
    yield from _host(Host(make_base(tmp_path), numbers=node_numbers))


@pytest.fixture(scope="session")
def podman_env(sim_archive: Path) -> Iterator[Mapping[str, str]]:
    try:
        with own_podman(sim_archive) as env:
            yield env
    except UnusableError as error:
        pytest.skip(str(error))


@pytest.fixture
def podman_host(
    tmp_path: Path, podman_env: Mapping[str, str], node_numbers: Numbers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Host]:
    for name, value in podman_env.items():
        monkeypatch.setenv(name, value)
    yield from _host(Host(make_base(tmp_path), "podman", node_numbers[:2]))


@pytest.fixture(
    params=[pytest.param("host", marks=pytest.mark.docker), pytest.param("podman_host", marks=pytest.mark.host)],
    ids=["docker", "podman"],
)
def any_host(request: pytest.FixtureRequest) -> Host:
    """One whose engine of containers is docker, and one whose is podman."""
    made: Host = request.getfixturevalue(request.param)
    return made


def _host(made: Host) -> Iterator[Host]:
    made.make_nodes()
    yield made
    made.end_all()
