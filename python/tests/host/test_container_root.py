"""Where Docker and podman keep things, by their settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ttstack.host.container_root import Settings, container_root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a file system with the defaults of both engines, and other places."""
    for folder in ("var/lib/docker", "var/lib/containers/storage", "data one", "data two"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("etc/docker", "etc/containers", "run", "proc/42"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def _daemon(top: Path, *words: str) -> None:
    (top / "run/docker.pid").write_text("42")
    (top / "proc/42/cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")


def test_defaults_where_they_exist(top: Path) -> None:
    assert container_root("docker", Settings(top)) == top / "var/lib/docker"
    assert container_root("podman", Settings(top)) == top / "var/lib/containers/storage"
    assert container_root("process", Settings(top)) is None
    (top / "var/lib/docker").rmdir()
    assert container_root("docker", Settings(top)) is None


@pytest.mark.parametrize("name", ["data-root", "graph"])
def test_the_settings_file(top: Path, name: str) -> None:
    (top / "etc/docker/daemon.json").write_text(json.dumps({name: str(top / "data one")}))
    assert container_root("docker", Settings(top)) == top / "data one"


@pytest.mark.parametrize("text", ["", "[]", '{"data-root": 1}', '{"data-root": ""}', '{"data-root": "relative"}'])
def test_a_settings_file_that_says_nothing_leaves_the_default(top: Path, text: str) -> None:
    (top / "etc/docker/daemon.json").write_text(text)
    assert container_root("docker", Settings(top)) == top / "var/lib/docker"


def test_the_daemon_that_runs_knows_best(top: Path) -> None:
    (top / "etc/docker/daemon.json").write_text(json.dumps({"data-root": str(top / "data one")}))
    for words in (("--data-root", str(top / "data two")), (f"--data-root={top / 'data two'}",)):
        _daemon(top, "/usr/bin/dockerd", *words)
        assert container_root("docker", Settings(top)) == top / "data two"
    (top / "daemon.json").write_text(json.dumps({"data-root": str(top / "data two")}))
    _daemon(top, "/nix/store/x/bin/.dockerd-wrapped", "--config-file=/daemon.json")
    assert container_root("docker", Settings(top)) == top / "data two"


def test_another_program_with_the_daemons_pid_says_nothing(top: Path) -> None:
    _daemon(top, "/usr/bin/other", "--data-root", str(top / "data two"))
    assert container_root("docker", Settings(top)) == top / "var/lib/docker"


def test_podman_of_a_user(top: Path) -> None:
    home = top / "home"
    (home / ".config/containers").mkdir(parents=True)
    (top / "etc/containers/storage.conf").write_text(f'[storage]\ngraphroot = "{top}/data one"\n')
    assert container_root("podman", Settings(top)) == top / "data one"
    (home / ".local/share/containers/storage").mkdir(parents=True)
    assert container_root("podman", Settings(top, home)) == home / ".local/share/containers/storage"
    (home / ".config/containers/storage.conf").write_text(f'[storage]\ngraphroot = "{top}/data two"\n')
    assert container_root("podman", Settings(top, home)) == top / "data two"
    (home / ".config/containers/storage.conf").write_text("[storage")
    assert container_root("podman", Settings(top, home)) == home / ".local/share/containers/storage"
