"""What goes wrong around a container, with a real Docker engine: memory, a stop that hangs, a removal that fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from containers_kit import FIRST, docker

from ttstack.host import process
from ttstack.run.client import Client
from ttstack.run.containers import ContainerRuntime
from ttstack.run.errors import RunRefusedError
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from containers_kit import Host

pytestmark = pytest.mark.docker


@pytest.fixture
def wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have ``docker`` on PATH be a script in which $docker is the real one."""
    real = shutil.which("docker")

    def wrap(script: str) -> None:
        program = tmp_path / "wrapped" / "docker"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ndocker={real}\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return wrap


def test_an_engine_without_memory_is_told_to_have_been_killed_for_it(
    host: Host, wrapped: Callable[[str], None]
) -> None:
    wrapped('[ "$1" != run ] || { shift; set -- run --memory 96m --memory-swap 96m "$@"; }\nexec $docker "$@"')
    config = host.base / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "sim_tensor_bytes": 64 << 20}))
    result = host.execute(host.arm())
    assert result.exit_code == 1
    closed = host.record(result.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", "engine_died")
    assert "SIGKILL" in closed.text
    assert "OOMKilled" in closed.text
    assert "Generating cache for" in host.log(result.run)  # it died as it converted weights
    assert host.clean()


@contextmanager
def _immutable(file: Path) -> Iterator[None]:
    """Keep a file from being removed, by root too."""
    file.touch()
    if subprocess.run(["chattr", "+i", file], capture_output=True, check=False).returncode:
        pytest.skip(f"no chattr +i on this file system ({file})")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", file], check=True)


def test_a_container_that_cannot_be_removed_keeps_its_card_dirty(host: Host) -> None:
    run = host.execute(host.arm(cards=FIRST, stop_grace_s=1), "up").run
    (container,) = host.containers()
    layer = Path(docker("inspect", "-f", "{{.GraphDriver.Data.UpperDir}}", container).strip())
    if not layer.is_dir():
        pytest.skip("this Docker engine keeps a container's files in another way than overlay2's")
    with _immutable(layer / "held"):
        host.ttx("down", run, code=1)
        assert "did not stop" in host.stderr
        assert "no supervisor" not in host.stderr
        assert docker("inspect", "-f", "{{.State.Status}}", container).strip() == "dead"
        assert host.slots() == ["dirty", "free"]
        assert wait_until(lambda: host.record(run).closed is not None, 20)  # its supervisor does, a moment later
        closed = host.record(run).closed
        assert closed is not None
        assert (closed.outcome, closed.reason) == ("failed", "stop_failed")
        refused = host.execute(host.arm("other", cards=FIRST))
        assert (refused.exit_code, refused.error.reason) == (3, "busy")  # type: ignore[union-attr]
        assert not wait_until(lambda: host.slots()[0] != "dirty", 1)
    assert wait_until(host.clean, 20), host.slots()
    assert host.live(run).status == "stopped"


def test_a_stop_that_docker_cannot_carry_out_keeps_the_card_dirty(host: Host) -> None:
    """Docker's own parent of the container is stopped: signals do not get through, as with a process in state D."""
    run = host.execute(host.arm(cards=FIRST, stop_grace_s=1), "up").run
    (container,) = host.containers()
    leader = process.stat(int(docker("inspect", "-f", "{{.State.Pid}}", container)))
    assert leader is not None
    shim = process.identify(leader.parent)
    assert shim is not None
    process.send(shim, signal.SIGSTOP)
    try:
        host.ttx("down", run, code=1)
        assert "did not stop" in host.stderr
        assert host.slots()[0] == "dirty"
        assert host.live(run).status == "dirty"
        assert process.alive(leader.id)
    finally:
        process.send(shim, signal.SIGCONT)
    assert wait_until(host.clean, 40), host.slots()
    closed = host.record(run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", "stop_failed")


def _watchers(container: str) -> list[str]:
    """List the clients that watch a container."""
    lines = [process.command(pid) for pid in process.pids()]
    return [line for line in lines if container[:12] in line and ("docker logs" in line or "docker wait" in line)]


def test_a_killed_supervisor_leaves_no_client_of_docker(host: Host) -> None:
    run = host.execute(host.arm(cards=FIRST), "up").run
    (container,) = host.containers()
    assert len(_watchers(container)) == 2
    host.kill_supervisor(run)
    assert wait_until(lambda: _watchers(container) == [], 10), _watchers(container)
    host.ttx("down", run)
    assert host.clean()


NOBODY = 'exec setpriv --reuid 65534 --regid 65534 --clear-groups $docker "$@"'


def test_a_user_who_may_not_talk_to_docker_is_told_so(host: Host, wrapped: Callable[[str], None]) -> None:
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not address.startswith("unix://"):
        pytest.skip("the Docker engine has no socket here")
    wrapped(NOBODY)
    result = host.execute(host.arm())
    assert (result.exit_code, result.error.reason) == (3, "runtime_denied")  # type: ignore[union-attr]
    assert result.error.message == "this user may not talk to docker"  # type: ignore[union-attr]
    closed = host.record(result.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("refused", "runtime_denied")


@pytest.mark.parametrize("address", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:9"])
def test_a_daemon_that_does_not_run_is_told(host: Host, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        result = host.execute(host.arm())
        assert (result.exit_code, result.error.reason) == (3, "runtime_down")  # type: ignore[union-attr]
        assert result.error.message == "docker is installed, but its daemon does not run"  # type: ignore[union-attr]
        for ask in (lambda: ContainerRuntime("docker").find("R", None), lambda: Client("docker").of_run("R")):
            with pytest.raises(RunRefusedError, match="its daemon does not run"):
                ask()
