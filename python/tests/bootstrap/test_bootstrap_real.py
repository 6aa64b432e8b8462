"""The bootstrap script with the real Nix of this machine."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.host


def _bootstrap(*words: str, cwd: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROJECT / "bootstrap"), *words],
        cwd=cwd,
        env={**os.environ, "PATH": path},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def test_a_second_call_installs_nothing_and_only_runs(tmp_path: Path) -> None:
    (tmp_path / "apt-get").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    (tmp_path / "apt-get").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    _bootstrap("--version", cwd=tmp_path, path=path)
    done = _bootstrap("--version", cwd=tmp_path, path=path)
    assert (done.returncode, done.stdout.split()[0]) == (0, "ttx"), done.stderr
    assert "building" not in done.stderr
    assert not (tmp_path / "called").exists()


def test_the_arms_that_came_with_ttx_are_found_from_any_folder(tmp_path: Path) -> None:
    done = _bootstrap("arm", "render", "prod", "--as", "docker", cwd=tmp_path, path=os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert "vllm" in done.stdout


def test_nix_gets_the_settings_and_the_override(tmp_path: Path) -> None:
    words = ("nix", "eval", "--raw", f"path:{PROJECT}#packages.{platform.machine()}-linux.ttx.meta.mainProgram")
    done = _bootstrap(*words, cwd=tmp_path, path=os.environ["PATH"])
    assert (done.returncode, done.stdout) == (0, "ttx"), done.stderr


def test_develop_gives_a_shell_with_the_tools(tmp_path: Path) -> None:
    words = (
        "nix",
        "develop",
        f"path:{PROJECT}",
        "-c",
        "sh",
        "-c",
        "for tool in pytest mypy ruff; do command -v $tool; done",
    )
    done = _bootstrap(*words, cwd=tmp_path, path=os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert [line.startswith("/nix/store/") for line in done.stdout.splitlines()] == [True] * 3
    assert "error" not in done.stderr


def test_a_clone_of_depth_1_in_a_folder_with_a_space_works(tmp_path: Path) -> None:
    clone = tmp_path / "my clone"
    source = f"file://{PROJECT}"
    git = ["git", "-c", "safe.directory=*", "clone", "-q", "--depth", "1", source, str(clone)]
    made = subprocess.run(git, capture_output=True, text=True, timeout=60, check=False)
    if made.returncode != 0:
        pytest.skip(f"the project here is no git repository: {made.stderr.strip()}")
    done = subprocess.run(
        [str(clone / "bootstrap"), "--version"], cwd=tmp_path, text=True, capture_output=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "ttx"), done.stderr
