"""A Docker engine that goes away and comes back while an engine runs in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from containers_kit import docker

from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from containers_kit import Host

pytestmark = pytest.mark.docker


class Daemon:
    """A Docker engine of its own: no bridge, so its containers have no ports."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.host = f"unix://{folder}/socket"
        self._log = folder / "log"
        self._words = [
            *("dockerd", "--host", self.host, "--pidfile", f"{folder}/pid"),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
            *("--bridge", "none", "--iptables=false", "--ip-forward=false", *words),
        ]
        self.start()

    def start(self) -> None:
        if self.answers():
            return
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(self._words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        assert wait_until(self.answers, 40), self._log.read_text()[-2000:]

    def answers(self) -> bool:
        done = subprocess.run(["docker", "--host", self.host, "version"], capture_output=True, timeout=20, check=False)
        return done.returncode == 0

    def end(self) -> None:
        self._popen.terminate()
        self._popen.wait(60)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="ttxd"))  # short: it holds a socket
    yield made
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(f"{made}/")), reverse=True):
        subprocess.run(["umount", place], check=True)  # a daemon mounts its data on itself
    shutil.rmtree(made)


def _daemon(folder: Path, archive: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Daemon:
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("no dockerd here, or not root")
    made = Daemon(folder, *words)
    monkeypatch.setenv("DOCKER_HOST", made.host)
    docker("load", "--input", str(archive))
    return made


def _last(log: str) -> list[str]:
    return [line for line in log.splitlines() if line]


def test_an_engine_that_ends_with_its_daemon_is_found_to_have_ended(
    host: Host, folder: Path, sim_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = _daemon(folder, sim_archive, monkeypatch)
    try:
        ttx = host.start("up", host.arm("slow", "hang:mesh", stop_grace_s=5))
        assert wait_until(lambda: [run for run in host.records() if "device" in _step(host, run.id)] != [], 60)
        (run,) = [run.id for run in host.records()]
        daemon.end()
        daemon.start()
        out, err = ttx.communicate(timeout=90)
        assert (ttx.returncode, json.loads(out)["reason"]) == (1, "engine_died"), err
        assert host.record(run).outcome == "failed"
        assert host.log(run).count("Opening user mode device driver") == 1
        assert host.clean()
    finally:
        daemon.start()
        host.end_all()
        daemon.end()


def test_an_engine_that_outlives_its_daemon_is_followed_further(
    host: Host, folder: Path, sim_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = _daemon(folder, sim_archive, monkeypatch, "--live-restore")
    try:
        ttx = host.start("up", host.arm("slow", "hang:mesh", stop_grace_s=5))
        assert wait_until(lambda: [run for run in host.records() if "device" in _step(host, run.id)] != [], 60)
        (run,) = [run.id for run in host.records()]
        before = _last(host.log(run))
        daemon.end()
        refused = host.execute(host.arm("other"))
        assert (refused.exit_code, refused.error.reason) == (3, "runtime_down")  # type: ignore[union-attr]
        assert {"held", "unknown"} == set(host.slots())  # one has its supervisor; of the other nothing is known
        daemon.start()
        assert not wait_until(lambda: ttx.poll() is not None, 3)
        assert len(host.containers()) == 1
        ttx.send_signal(signal.SIGTERM)
        ttx.communicate(timeout=60)
        assert ttx.returncode == 130
        after = _last(host.log(run))
        assert after[: len(before)] == before
        assert len(after) == len(set(after)) > len(before)  # its last words came, and no line came twice
        assert host.clean()
    finally:
        daemon.start()
        host.end_all()
        daemon.end()


def _step(host: Host, run: str) -> str:
    path = host.places.state / "runs" / run / "state.json"
    return str(json.loads(path.read_text())["step"]) if path.exists() else ""
