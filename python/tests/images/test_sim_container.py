"""The simulated engine in a container, with a real Docker engine."""

from __future__ import annotations

import http.client
import json
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from images_kit import PROJECT, run

from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.docker import docker_argv

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.docker

# A character device that is always there, that anybody may open, and that nobody does.
NODE = "/dev/full"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Container:
    """The arm sim-docker in a container; removed at the end."""

    def __init__(self, folder: Path, image: str, *more: str) -> None:
        asked = load("sim-docker", Shelf(PROJECT / "arms", PROJECT / "pins"))
        assert asked.pin.image == image
        self.port = _free_port()
        self.root = asked.model.root
        engine = replace(asked.arm.engine, port=self.port, args={**asked.arm.engine.args, "sim-boot-ms": 100})
        asked = replace(asked, arm=replace(asked.arm, name=f"test-{self.port}", engine=engine))
        cards = [replace(card, node=NODE) for card in nominal_cards(asked)]
        launch = build_launch(asked, cards, cache_root=str(folder))
        for mount in launch.mounts:
            if not mount.read_only:
                Path(mount.source).mkdir(parents=True)
                Path(mount.source).chmod(0o777)
        self.cache = Path(launch.cache_dir)
        argv = list(docker_argv(launch, "up"))
        argv[2:2] = more
        self.id = run(*argv).well().strip()

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def wait_until_healthy(self) -> None:
        for _ in range(300):
            try:
                if self.get("/health")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass  # the port's proxy is there before the engine
            assert self.inspect()["Running"], self.log()
            time.sleep(0.1)
        pytest.fail(f"not healthy in time:\n{self.log()}")

    def inspect(self) -> dict[str, object]:
        state: dict[str, object] = json.loads(run("docker", "inspect", "--format", "{{json .State}}", self.id).well())
        return state

    def log(self) -> str:
        done = run("docker", "logs", self.id)
        return done.out + done.err

    def stop(self) -> object:
        run("docker", "stop", self.id).well()
        return self.inspect()["ExitCode"]

    def remove(self) -> None:
        run("docker", "stop", self.id)
        run("docker", "rm", self.id).well()


@pytest.fixture
def started(tmp_path: Path, sim_image: str) -> Iterator[Container]:
    container = Container(tmp_path, sim_image)
    yield container
    container.remove()


@pytest.fixture
def confined(tmp_path: Path, sim_image: str) -> Iterator[Container]:
    container = Container(tmp_path, sim_image, "--user", "12345:12345", "--read-only")
    yield container
    container.remove()


def test_it_serves_the_arms_model_on_the_published_port(started: Container) -> None:
    started.wait_until_healthy()
    status, body = started.get("/v1/models")
    assert (status, json.loads(body)["data"][0]["root"]) == (200, started.root)
    assert "multidevice with 1 devices and grid (1, 1) is created" in started.log()
    assert list(started.cache.rglob("*.tensorbin"))


def test_sigterm_reaches_the_engine_which_closes_its_devices(started: Container) -> None:
    started.wait_until_healthy()
    assert started.stop() == 0
    log = started.log()
    assert "Closing device 0" in log
    assert "Finished server process [1]" in log  # the engine itself is the container's first process


def test_any_user_can_run_it_on_a_read_only_root(confined: Container) -> None:
    confined.wait_until_healthy()
    assert confined.get("/v1/models")[0] == 200
    tensors = list(confined.cache.rglob("*.tensorbin"))
    assert {file.stat().st_uid for file in tensors} == {12345}
    assert confined.stop() == 0
    assert "Traceback" not in confined.log()


def test_it_writes_nothing_outside_its_mounts(started: Container) -> None:
    started.wait_until_healthy()
    # What Docker itself makes are the folders of the mounts and of the device.
    changed = [line[2:] for line in run("docker", "diff", started.id).well().splitlines()]
    mounts = ("/cache", "/dev", started.root)
    odd = [path for path in changed if not any(path.startswith(place) or place.startswith(path) for place in mounts)]
    assert odd == []


def test_without_a_command_it_tells_its_usage(sim_image: str) -> None:
    assert run("docker", "run", "--rm", "--network", "none", sim_image).well().startswith("usage: ttx-sim serve ROOT")


def test_it_holds_no_shell(sim_image: str) -> None:
    done = run("docker", "run", "--rm", "--network", "none", sim_image, "sh")
    assert done.code == 127, done.err
