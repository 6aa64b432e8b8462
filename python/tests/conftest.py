"""For every room: tests marked docker need an engine, and some of them the image of the simulated engine."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFAULT = tuple((number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGQUIT))
PROJECT = Path(__file__).resolve().parents[2]


@functools.cache
def _engine_answers() -> bool:
    try:
        done = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker") is not None and not _engine_answers():
        pytest.skip("no Docker engine answers (checks/with-docker pytest -m docker)")


def pytest_configure() -> None:
    """Hear what a terminal sends, even when pytest was started in the background or by nohup, which have it ignored."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), *_DEFAULT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """Put the signal handlers back: a run that was interrupted ignores the signal from then on, and so would pytest."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def sim_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the image of the simulated engine from this tree; return its archive."""
    link = tmp_path_factory.mktemp("sim-image") / "sim-image"
    words = [str(PROJECT / "bootstrap"), "nix", "build", ".#sim-image", "--out-link", str(link)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return link


@pytest.fixture(scope="session")
def sim_image(sim_archive: Path) -> str:
    """Load the image of the simulated engine into the Docker engine; return its name."""
    with sim_archive.open("rb") as archive:
        done = subprocess.run(["docker", "load"], stdin=archive, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    listing = subprocess.run(["tar", "-xOf", sim_archive, "manifest.json"], capture_output=True, check=True, timeout=60)
    name: str = json.loads(listing.stdout)[0]["RepoTags"][0]
    return name
