"""The pin and the arm of the simulated engine's image."""

from __future__ import annotations

import tomllib

from images_kit import PROJECT

from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.docker import docker_argv

SHELF = Shelf(PROJECT / "arms", PROJECT / "pins")


def test_the_image_has_the_version_of_the_package() -> None:
    project = tomllib.loads((PROJECT / "python" / "pyproject.toml").read_text())["project"]
    assert load("sim-docker", SHELF).pin.image == f"ttstack/sim:{project['version']}"


def test_the_arm_is_the_simulated_one_in_a_container() -> None:
    sim, container = load("sim", SHELF).arm, load("sim-docker", SHELF).arm
    assert (container.engine.kind, container.engine.runtime) == ("sim", "docker")
    assert container.engine.port != sim.engine.port
    assert (container.engine.args, container.engine.tt, container.cards, container.expect) == (
        sim.engine.args,
        sim.engine.tt,
        sim.cards,
        sim.expect,
    )


def test_the_command_starts_with_the_engine_and_never_pulls() -> None:
    asked = load("sim-docker", SHELF)
    argv = docker_argv(build_launch(asked, nominal_cards(asked)), "up")
    at = argv.index(asked.pin.image)
    assert argv[at + 1 : at + 4] == ("ttx-sim", "serve", str(PROJECT / "arms" / "sim-tiny"))
    assert argv[argv.index("--pull") + 1] == "never"
    assert "/dev/tenstorrent/0:/dev/tenstorrent/0" in argv
