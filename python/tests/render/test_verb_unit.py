"""``ttx unit`` on arms of a folder of its own."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from ttstack.cli.main import main
from ttstack.errors import Exit
from ttstack.render.systemd import parse_command_line

if TYPE_CHECKING:
    from pathlib import Path

MODELS = """\
schema = 1
[tiny]
path = "/srv/tiny"
served_name = "tiny"
cache_gb = 1
"""
PIN = """\
schema = 1
image = "registry.example/tiny@sha256:%s"
home = "/opt/tt-metal"
tt_metal = "0123456789abcdef0123456789abcdef01234567"
""" % ("ab" * 32)
ARM = """\
schema = 1
description = "a tiny one"
pin = "only"
model = "tiny"
[engine]
kind = "vllm"
runtime = "docker"
port = 8000
[cards]
count = 1
mesh = "P150"
"""


@pytest.fixture
def arms(tmp_path: Path) -> Path:
    folder, pins = tmp_path / "arms", tmp_path / "pins"
    folder.mkdir()
    pins.mkdir()
    (folder / "models.toml").write_text(MODELS, encoding="utf-8")
    (pins / "only.toml").write_text(PIN, encoding="utf-8")
    (folder / "tiny.toml").write_text(ARM, encoding="utf-8")
    return folder


def test_the_unit_is_printed(arms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arms", str(arms), "unit", "tiny"]) == Exit.DONE
    out, err = capsys.readouterr()
    assert err == ""
    assert "Description=a tiny one\n" in out
    assert "hugepages" not in out
    assert out.endswith("WantedBy=multi-user.target\n")


def test_json_options_and_program(arms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--arms", str(arms), "unit", "tiny", "--json", "--hugepages", "--docker", "/opt/docker"]
    assert main(words) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert (found["arm"], found["name"], found["devices"]) == ("tiny", "ttx-tiny.service", ["/dev/tenstorrent/0"])
    [line] = [line for line in found["unit"].splitlines() if line.startswith("ExecStart=")]
    assert list(parse_command_line(line.removeprefix("ExecStart="))) == found["exec_start"]
    assert found["exec_start"][0] == "/opt/docker"
    assert "type=bind,src=/dev/hugepages-1G,dst=/dev/hugepages-1G" in found["exec_start"]


def test_a_simulated_engine_runs_under_this_interpreter(arms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ARM.replace('"vllm"', '"sim"').replace('"docker"', '"process"')
    (arms / "sim.toml").write_text(text, encoding="utf-8")
    assert main(["--arms", str(arms), "unit", "sim", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["exec_start"][:4] == [sys.executable, "-m", "ttstack.sim", "serve"]


def test_a_card_that_only_its_host_knows(arms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ARM.replace("count = 1", 'count = 1\nids = ["0000:01:00.0"]')
    (arms / "bdf.toml").write_text(text, encoding="utf-8")
    assert main(["--arms", str(arms), "unit", "bdf"]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert "--here" in err


@pytest.mark.host
def test_here_looks_at_this_host(arms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ARM.replace("count = 1", 'count = 1\nids = ["ffff:ff:1f.7"]')
    (arms / "nowhere.toml").write_text(text, encoding="utf-8")
    assert main(["--arms", str(arms), "unit", "nowhere", "--here"]) == Exit.USAGE
    assert "no card 'ffff:ff:1f.7' here" in capsys.readouterr().err
