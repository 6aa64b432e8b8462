"""Whether anything of an engine of containers runs here, over trees of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from card_trees import host

from ttstack.host.cards import inventory
from ttstack.host.containers import Answer, Containers, any_engine, look, run_command
from ttstack.host.engines import living
from ttstack.host.types import Roots

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ID = "ab" * 32


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """The first namespace's /proc with its first process."""
    add(tmp_path / "proc", 1, "systemd")
    (tmp_path / "proc/1/ns").mkdir()
    (tmp_path / "proc/1/ns/pid").symlink_to("pid:[4026531836]")
    (tmp_path / "proc/self").symlink_to("1")
    return tmp_path / "proc"


def add(proc: Path, pid: int, name: str, group: str = "/init.scope") -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "cgroup").write_text(f"0::{group}\n")


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("docker", "dockerd"),
        ("docker", ".dockerd-wrappe"),
        ("docker", "containerd-shim"),
        ("docker", "docker-containe"),
        ("podman", "conmon"),
    ],
)
def test_a_process_of_an_engine_is_named(proc: Path, engine: str, name: str) -> None:
    add(proc, 77, name)
    assert living(engine, proc) == f"{name} (pid 77)"
    assert living("podman" if engine == "docker" else "docker", proc) == ""


@pytest.mark.parametrize(
    ("engine", "group"),
    [
        ("docker", f"/docker/{ID}"),
        ("docker", f"/system.slice/docker-{ID}.scope"),
        ("podman", f"/machine.slice/libpod-{ID}.scope/container"),
    ],
)
def test_a_process_in_a_container_whose_engine_is_gone_is_named(proc: Path, engine: str, group: str) -> None:
    add(proc, 77, "python3", group)
    assert living(engine, proc) == f"pid 77 in a container of {engine}"


def test_others_are_none_of_theirs(proc: Path) -> None:
    add(proc, 77, "containerd", "/system.slice/containerd.service")  # which `systemctl stop docker` leaves
    add(proc, 78, "docker")  # the client
    add(proc, 79, "bash", "/user.slice/docker.service")
    assert (living("docker", proc), living("podman", proc)) == ("", "")


def test_a_proc_that_does_not_show_all_tells_nothing(proc: Path, tmp_path: Path) -> None:
    assert living("docker", tmp_path / "nowhere") is None
    (proc / "1").rename(proc / "5")
    (proc / "self").unlink()
    (proc / "self").symlink_to("5")
    assert living("docker", proc) is None  # hidepid
    (proc / "5").rename(proc / "1")
    (proc / "self").unlink()
    assert living("docker", proc) is None  # nor can it be told which namespace this is
    (proc / "self").symlink_to("1")
    assert living("docker", proc) == ""
    (proc / "77").mkdir()  # there, and without a name
    assert living("docker", proc) is None


DOWN = Answer(1, "", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n")


def ask(proc: Path, **told: Answer | Exception) -> Containers:
    def run(argv: Sequence[str], _seconds: float) -> Answer:
        answer = told.get(argv[0], FileNotFoundError(argv[0]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    roots = Roots(host("one-p150a").sys, proc, host("one-p150a").dev)
    return look(inventory(roots), roots, run=run, environ={}, socket=proc.parent / "docker.sock")


def test_docker_that_is_installed_and_stopped_has_no_containers(proc: Path) -> None:
    assert ask(proc, docker=DOWN) == Containers(absent=("no podman here", "nothing of docker runs here"))
    add(proc, 77, "containerd-shim")
    (trouble,) = ask(proc, docker=DOWN).troubles
    assert trouble == (
        "docker is installed, but its daemon does not answer (start it: systemctl start docker);"
        " containerd-shim (pid 77) is there, so containers may be, too"
    )


def test_a_socket_that_a_dead_docker_left_is_nothing_and_that_of_a_living_one_is_something(proc: Path) -> None:
    (proc.parent / "docker.sock").write_text("")
    assert ask(proc).troubles == ()
    add(proc, 77, "dockerd")
    assert "no docker program on PATH; dockerd (pid 77) is there" in ask(proc).troubles[0]


def test_podman_that_does_not_work_has_no_containers_unless_one_is_seen(proc: Path) -> None:
    broken = Answer(125, "", "Error: cannot set up namespace using newuidmap\n")
    assert ask(proc, podman=broken).troubles == ()
    add(proc, 77, "sh", f"/user.slice/libpod-{ID}.scope")
    assert "pid 77 in a container of podman is there" in ask(proc, podman=broken).troubles[0]


def test_one_that_cannot_be_looked_for_may_have_containers(proc: Path) -> None:
    (proc / "self").unlink()
    assert len(ask(proc, docker=DOWN, podman=TimeoutError()).troubles) == 2


def test_any_engine_is_one_that_is_installed_or_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    assert not any_engine()
    for name in ("podman", "docker", "docker.sock"):
        (tmp_path / name).write_text("")  # that it may not be run is seen when it is asked
        assert any_engine()
        (tmp_path / name).unlink()


def test_a_program_that_this_user_may_not_run_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "docker").write_text("")
    with pytest.raises(PermissionError):
        run_command(["docker"], 30)
    (tmp_path / "docker").unlink()
    with pytest.raises(FileNotFoundError):
        run_command(["docker"], 30)
