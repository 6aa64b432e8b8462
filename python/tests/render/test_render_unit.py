"""The unit, and the golden texts of a production-like arm.

Refresh the golden texts with: TTX_REFRESH_GOLDEN=1 pytest tests/render/test_render_unit.py, and read the diff.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from render_asked import CARDS, PROD, as_process, with_engine

from ttstack.errors import TtxError
from ttstack.render.build import build_launch
from ttstack.render.cards import nominal_cards
from ttstack.render.compare import differences
from ttstack.render.docker import docker_argv, parse_docker
from ttstack.render.errors import RenderError
from ttstack.render.launch import Device
from ttstack.render.systemd import command_line, decode, parse_command_line
from ttstack.render.unit import STOP_MARGIN_S, exec_start, unit_name, unit_text

if TYPE_CHECKING:
    from ttstack.arm.types import Asked
    from ttstack.render.launch import Launch

GOLDEN = Path(__file__).parent / "golden"
SIM = ("/usr/bin/python3", "-m", "ttstack.sim")


def launch_of(asked: Asked) -> Launch:
    return build_launch(asked, nominal_cards(asked), engine_command=SIM if asked.arm.engine.kind == "sim" else None)


def unit_of(asked: Asked, program: str | None = None) -> str:
    arm = asked.arm
    return unit_text(
        launch_of(asked),
        arm=arm.name,
        description=arm.description,
        boot_timeout_s=arm.engine.boot_timeout_s,
        program=program,
    )


def directives(text: str, key: str) -> list[str]:
    return [line.removeprefix(f"{key}=") for line in text.splitlines() if line.startswith(f"{key}=")]


def docker_lines() -> str:
    """One argument a line, so that a diff shows the one that changed."""
    launch = build_launch(PROD, CARDS, hugepages=True, run_id="20260101-000000-prod", slots=("0000036110007711", "b"))
    return "".join(f"{json.dumps(word)}\n" for word in docker_argv(launch, "up"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prod.docker", docker_lines()),
        ("prod.exec-start", command_line(exec_start(launch_of(PROD))) + "\n"),
        ("prod.service", unit_of(PROD)),
        ("prod-podman.service", unit_of(with_engine(runtime="podman", secrets=()))),
        ("sim-process.service", unit_of(as_process(with_engine(secrets=())))),
    ],
)
def test_golden(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("TTX_REFRESH_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_exec_start_is_the_docker_command() -> None:
    [line] = directives(unit_of(PROD), "ExecStart")
    launch = launch_of(PROD)
    argv = parse_command_line(line)
    assert differences(docker_argv(launch, "unit"), argv) == []
    assert argv[0] == "/usr/bin/docker"
    assert parse_docker(argv) == launch


def test_another_program() -> None:
    text = unit_of(PROD, "/opt/bin/docker")
    assert [parse_command_line(line)[0] for line in directives(text, "ExecStart")] == ["/opt/bin/docker"]
    assert decode(directives(text, "ExecStop")[0]) == ("-/opt/bin/docker", "stop", "-t", "120", "ttx-prod")
    assert "/usr/bin/docker" not in text


def test_stopping_leaves_more_time_than_the_grace() -> None:
    text = unit_of(with_engine(stop_grace_s=300))
    assert directives(text, "TimeoutStopSec") == [str(300 + STOP_MARGIN_S)]
    assert STOP_MARGIN_S >= 30
    assert decode(directives(text, "ExecStop")[0])[2:4] == ("-t", "300")


def test_writable_folders_are_made_and_no_other() -> None:
    launch = build_launch(PROD, CARDS, hugepages=True)
    text = unit_text(launch, arm="prod", description="", boot_timeout_s=60)
    made = decode(directives(text, "ExecStartPre")[0])
    assert made == (
        *("+/usr/bin/install", "-d", "-m", "0755", "-o", "1000", "-g", "1000", "--"),
        launch.cache_dir,
        "/var/cache/tenstorrent/jit/prod-ttnn-0.81.1",
    )
    needed = decode(directives(text, "RequiresMountsFor")[0])
    assert needed == ("/srv/models/qwen3.6-27b", *made[9:], "/srv/src/qwen36")


def test_another_owner() -> None:
    def made(owner: str) -> tuple[str, ...]:
        text = unit_text(launch_of(PROD), arm="prod", description="", boot_timeout_s=60, owner=owner)
        return decode(directives(text, "ExecStartPre")[0])

    assert made("0:7")[4:8] == ("-o", "0", "-g", "7")
    with pytest.raises(RenderError, match="UID:GID"):
        made("root")


def test_the_folders_are_really_made(tmp_path: Path) -> None:
    launch = build_launch(PROD, CARDS, cache_root=str(tmp_path / "a % cache"))
    text = unit_text(launch, arm="prod", description="", boot_timeout_s=60, owner=f"{os.getuid()}:{os.getgid()}")
    program, *rest = decode(directives(text, "ExecStartPre")[0])
    for _ in range(2):
        subprocess.run([shutil.which("install") or program, *rest], check=True, timeout=20)
    assert Path(launch.cache_dir).is_dir()


FAKE_DOCKER = """#!/bin/sh
[ "$1 $2 $3" = "container inspect ttx-prod" ] || exit 64
exit {code}
"""


@pytest.mark.parametrize(("code", "refused"), [(0, True), (1, False)])
def test_a_stale_container_is_refused_with_a_way_out(tmp_path: Path, code: int, refused: bool) -> None:  # noqa: FBT001
    fake = tmp_path / "a docker"
    fake.write_text(FAKE_DOCKER.format(code=code), encoding="utf-8")
    fake.chmod(0o755)
    guard = decode(directives(unit_of(PROD, str(fake)), "ExecStartPre")[1])
    done = subprocess.run(guard, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == (1 if refused else 0)
    assert done.stdout == ""
    assert ("there is a container ttx-prod already" in done.stderr) == refused
    assert (f"{fake} stop -t 120 ttx-prod && {fake} rm ttx-prod" in done.stderr) == refused


@pytest.mark.parametrize("asked", [PROD, with_engine(runtime="podman"), as_process()])
def test_nothing_is_removed_or_killed_by_the_unit(asked: Asked) -> None:
    commands = [line for line in unit_of(asked).splitlines() if line.startswith("Exec")]
    assert not any("rm -f" in line or "kill" in line for line in commands)


def test_secrets_come_from_a_file() -> None:
    assert directives(unit_of(PROD), "EnvironmentFile") == ["/etc/ttx/ttx-prod.env"]
    assert directives(unit_of(with_engine(secrets=())), "EnvironmentFile") == []


def test_a_process_gets_its_environment_and_its_cards_only() -> None:
    asked = as_process()
    text = unit_of(asked)
    lines = directives(text, "Environment")
    assert '"QWEN_PRICE=100%% of $5"' in lines
    assert len(lines) == len(launch_of(asked).env)
    assert directives(text, "DeviceAllow") == ["/dev/tenstorrent/0 rw", "/dev/tenstorrent/1 rw"]
    assert directives(text, "ExecStop") == []
    assert directives(text, "PrivateDevices") == []


@pytest.mark.parametrize("runtime", ["docker", "podman", "process"])
def test_only_docker_depends_on_the_daemon(runtime: str) -> None:
    text = unit_of(as_process() if runtime == "process" else with_engine(runtime=runtime))
    assert directives(text, "Requires") == (["docker.service"] if runtime == "docker" else [])


@pytest.mark.parametrize(
    ("description", "line"),
    [("a\nExecStart=/bin/evil", "a ExecStart=/bin/evil"), ("a\\", "a"), ("100%", "100%%"), ("", "the arm prod")],
)
def test_a_description_is_one_line(description: str, line: str) -> None:
    text = unit_text(launch_of(PROD), arm="prod", description=description, boot_timeout_s=60)
    assert directives(text, "Description") == [line]
    assert len(directives(text, "ExecStart")) == 1


@pytest.mark.parametrize(
    ("launch", "program"),
    [
        (launch_of(PROD), "bin/docker"),
        (launch_of(PROD), "/opt/a$b/docker"),
        (replace(launch_of(as_process()), devices=(Device("/dev/a b", "/dev/a b"),)), None),
        (replace(launch_of(as_process()), name="a\nb"), None),
        (replace(launch_of(as_process()), env={"A": "b\nc", "TT_METAL_CACHE": "/c"}), None),
    ],
)
def test_what_a_unit_cannot_hold_is_refused(launch: Launch, program: str | None) -> None:
    with pytest.raises(RenderError):
        unit_text(launch, arm="prod", description="", boot_timeout_s=60, program=program)


def test_a_description_that_systemd_would_drop_is_refused() -> None:
    with pytest.raises(TtxError, match=r"U\+FFFE"):
        unit_text(launch_of(PROD), arm="prod", description="\ufffe", boot_timeout_s=60)


def test_the_unit_is_named_after_the_container() -> None:
    assert unit_name(launch_of(PROD)) == "ttx-prod.service"


@pytest.mark.host
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize(
    "asked", [PROD, with_engine(runtime="podman"), as_process()], ids=["docker", "podman", "process"]
)
def test_systemd_finds_nothing_to_say(tmp_path: Path, asked: Asked) -> None:
    # verify wants the program and the units that it names to be there.
    program = None if asked.arm.engine.runtime == "process" else "/bin/true"
    text = unit_of(asked, program).replace("docker.service", "ttx-test-daemon.service")
    (tmp_path / "ttx-test-daemon.service").write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
    unit = tmp_path / "ttx-prod.service"
    unit.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert [line for line in done.stderr.splitlines() if "ttx-" in line] == []
    assert done.returncode == 0
