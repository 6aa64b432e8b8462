"""checks/with-docker on a made machine: programs that only say that they were called."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from images_kit import PROJECT

pytestmark = pytest.mark.host

TOOLS = ("cut", "env", "mktemp", "rm", "sed", "setpriv", "setsid", "sh", "sleep", "sort", "tail", "timeout", "touch")
SAY = 'echo "${0##*/} $*" >>"$CALLS"\n'
# An engine that is up while it runs, and ends when it is asked to.
ENGINE = f"""\
{SAY}trap 'rm -f "$CALLS.up"; exit 0' TERM
echo $$ >"$CALLS.pid"
touch "$CALLS.up"
while :; do sleep 0.05; done
"""


@dataclass(frozen=True)
class Machine:
    """A PATH and a folder for temporary files. On it one is root, and control groups are mounted."""

    folder: Path
    env: dict[str, str]

    def program(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{text}")
        file.chmod(0o755)

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PROJECT / "checks" / "with-docker", *words],
            env=self.env | env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str, **env: str) -> tuple[int, str, str]:
        process = self.start(*words, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def calls(self, program: str) -> list[str]:
        file = Path(self.env["CALLS"])
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.split()[0] == program]

    def engine_pid(self) -> int:
        return int(Path(self.env["CALLS"] + ".pid").read_text())

    def left_behind(self) -> list[str]:
        return [entry.name for entry in (self.folder / "kept").iterdir()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("bin", "kept"):
        (tmp_path / name).mkdir()
    for name in TOOLS:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    env = {"PATH": str(tmp_path / "bin"), "TMPDIR": str(tmp_path / "kept"), "CALLS": str(tmp_path / "calls")}
    machine = Machine(tmp_path, env)
    machine.program("id", "echo 0\n")
    machine.program("grep", "exit 0\n")
    machine.program("ip", SAY)
    machine.program("apt-get", f"{SAY}exit 1\n")
    machine.program("apt-cache", "exit 1\n")
    machine.program("podman", SAY)
    machine.program("docker", 'test -e "$CALLS.up"\n')
    machine.program("dockerd", ENGINE)
    return machine


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_an_engine_that_answers_is_used_as_it_is(machine: Machine) -> None:
    Path(machine.env["CALLS"] + ".up").touch()
    machine.program("id", "echo 1000\n")  # as a user who may talk to it does
    code, out, err = machine.run("sh", "-c", "echo $DOCKER_HOST; exit 7", DOCKER_HOST="unix:///given")
    assert (code, out, err) == (7, "unix:///given\n", "")
    assert not machine.calls("dockerd")
    assert not machine.calls("ip")


def test_else_one_is_started_for_the_command_and_stopped_after_it(machine: Machine) -> None:
    code, out, err = machine.run("sh", "-c", 'test -e "$CALLS.up" && echo $DOCKER_HOST; exit 7')
    assert (code, err) == (7, "")
    assert out.startswith(f"unix://{machine.folder}/kept/")
    assert _gone(machine.engine_pid())
    assert not Path(machine.env["CALLS"] + ".up").exists()  # it was asked, not killed
    assert machine.left_behind() == []
    added, *_, deleted = machine.calls("ip")
    bridge = added.split()[3]
    assert (added, deleted) == (f"ip link add {bridge} type bridge", f"ip link delete {bridge}")


def test_its_data_bridge_and_firewall_are_nobody_elses(machine: Machine) -> None:
    machine.run("sh", "-c", ":")
    (started,) = machine.calls("dockerd")
    words = started.split()
    for option in ("--data-root", "--exec-root", "--pidfile"):
        assert words[words.index(option) + 1].startswith(f"{machine.folder}/kept/")
    assert words[words.index("--bridge") + 1] == machine.calls("ip")[0].split()[3]
    assert "--iptables=false" in words


def test_an_interrupt_from_the_terminal_does_not_reach_the_engine(machine: Machine) -> None:
    program = "import os, sys; print(os.getsid(int(open(sys.argv[1]).read())) == os.getsid(0))"
    _, out, _ = machine.run(sys.executable, "-c", program, machine.env["CALLS"] + ".pid")
    assert out == "False\n"


def test_a_killed_script_leaves_no_engine(machine: Machine) -> None:
    process = machine.start("sh", "-c", "echo up; read -r _")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        pid = machine.engine_pid()
        process.send_signal(signal.SIGKILL)
        assert _gone(pid)
    finally:
        process.communicate(timeout=10)


SKIPPED = "skipped: the tests marked docker (no Docker engine: "


@pytest.mark.parametrize(
    ("program", "text", "env", "reason"),
    [
        ("id", "echo 1000\n", {}, "none runs, and only root can start one"),
        ("id", "echo 0\n", {"TTX_DOCKER": "no"}, "TTX_DOCKER=no"),
        ("grep", "exit 1\n", {}, "none runs, and none can be started here: no cgroup file system is mounted"),
    ],
)
def test_where_none_can_run_nothing_is_tried_and_one_line_says_why(
    machine: Machine, program: str, text: str, env: dict[str, str], reason: str
) -> None:
    machine.program(program, text)
    code, out, err = machine.run("sh", "-c", "echo ran; exit 3", **env)
    assert (code, out, err) == (3, "ran\n", f"{SKIPPED}{reason})\n")
    for tried in ("apt-get", "dockerd", "ip"):
        assert not machine.calls(tried)


def test_a_missing_engine_is_installed(machine: Machine) -> None:
    (machine.folder / "bin" / "docker").unlink()
    bring = (
        f"case \"$*\" in *' docker.io '*) printf '%s' '#!/bin/sh\ntest -e \"$CALLS.up\"\n' >{machine.folder}/bin/docker"
    )
    machine.program("apt-get", f"{SAY}{bring}; chmod +x {machine.folder}/bin/docker ;; esac\n")
    (machine.folder / "bin" / "chmod").symlink_to(str(shutil.which("chmod")))
    machine.program("apt-cache", "exit 0\n")
    code, out, err = machine.run("sh", "-c", 'test -e "$CALLS.up" && echo ran')
    assert (code, out) == (0, "ran\n"), err
    assert machine.calls("apt-get")[-1].endswith("install --no-install-recommends docker.io iproute2 docker-cli")


def test_a_missing_podman_is_installed(machine: Machine) -> None:
    (machine.folder / "bin" / "podman").unlink()
    machine.program("apt-get", SAY)
    code, out, err = machine.run("sh", "-c", "echo ran")
    assert (code, out) == (0, "ran\n")
    assert machine.calls("apt-get")[-1].endswith("install --no-install-recommends podman iptables")
    assert err == "with-docker: installing podman from the distribution: the tests of containers run with it, too\n"
    for program, text, env in (("id", "echo 0\n", {"TTX_DOCKER": "no"}), ("id", "echo 1000\n", {})):
        machine.program(program, text)
        calls = len(machine.calls("apt-get"))
        assert "podman" not in machine.run("sh", "-c", ":", **env)[2]
        assert len(machine.calls("apt-get")) == calls


def test_a_podman_that_cannot_be_installed_keeps_nothing_from_being_run(machine: Machine) -> None:
    (machine.folder / "bin" / "podman").unlink()
    code, out, err = machine.run("sh", "-c", "echo ran")
    assert (code, out) == (0, "ran\n")
    assert err.splitlines()[-1] == "with-docker: podman could not be installed: its tests are skipped"


def test_one_that_cannot_be_installed_is_one_line(machine: Machine) -> None:
    (machine.folder / "bin" / "docker").unlink()
    code, out, err = machine.run("sh", "-c", "echo ran")
    assert (code, out) == (0, "ran\n")
    assert err.splitlines()[-1] == f"{SKIPPED}none runs, and docker.io could not be installed)"


def test_one_that_does_not_start_is_one_line_and_leaves_nothing(machine: Machine) -> None:
    machine.program("dockerd", "echo first; echo 'failed to start daemon: not here'; exit 1\n")
    code, out, err = machine.run("sh", "-c", 'echo "ran ${DOCKER_HOST-without}"')
    assert (code, out) == (0, "ran without\n")
    assert err == f"{SKIPPED}none runs, and dockerd did not start: failed to start daemon: not here)\n"
    assert machine.left_behind() == []
    assert machine.calls("ip")[-1].startswith("ip link delete ")


def test_it_tells_how_it_is_called(machine: Machine) -> None:
    assert machine.run()[0] == 2
    code, out, _ = machine.run("--help")
    assert code == 0
    assert "usage: checks/with-docker COMMAND" in out
