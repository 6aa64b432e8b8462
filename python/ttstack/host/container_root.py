"""Where Docker and podman keep images, layers and logs, learned from their settings.

``docker info`` would tell, but asks a daemon that may hang. Docker: the arguments of the daemon that runs (NixOS gives
it its settings there), else ``data-root`` of its settings file, else its default (dockerd(8)). podman: ``graphroot`` of
storage.conf (containers-storage.conf(5)), else its default.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the engines' settings and defaults are looked for."""

    top: Path = Path("/")  # of the file system; tests put a folder in its place
    home: Path | None = None  # of the user, for engines that run without root


def settings_of(environ: Mapping[str, str]) -> Settings:
    """Say where to look for this user: root's engines have no folders of their own."""
    home = environ.get("HOME", "")
    return Settings(home=Path(home) if home.startswith("/") and os.geteuid() else None)


def container_root(runtime: str, where: Settings) -> Path | None:
    """Find the folder that an engine's containers fill; None for a process, and where there is no such folder.

    ``runtime`` is docker, podman or process. What cannot be read counts as not set.
    """
    candidates: list[Path | None] = []
    if runtime == "docker":
        own = where.home / ".local/share/docker" if where.home else None
        candidates = [_told_to_daemon(where.top), _data_root(where.top / "etc/docker/daemon.json")]
        candidates += [where.top / "var/lib/docker", own]
    elif runtime == "podman":
        config = where.home / ".config/containers/storage.conf" if where.home else None
        own = where.home / ".local/share/containers/storage" if where.home else None
        candidates = [_graph_root(config) if config else None, own]
        candidates += [_graph_root(where.top / "etc/containers/storage.conf"), where.top / "var/lib/containers/storage"]
    return next((folder for folder in candidates if folder and folder.is_absolute() and _is_folder(folder)), None)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _told_to_daemon(top: Path) -> Path | None:
    """Read the command line of the daemon that wrote its pid file."""
    try:
        pid = int((top / "run/docker.pid").read_text(encoding="ascii"))
        data = (top / "proc" / str(pid) / "cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    words = [os.fsdecode(word) for word in data.split(b"\0") if word]
    if not words or "dockerd" not in Path(words[0]).name:
        return None  # the pid is another program's by now
    for name in ("data-root", "graph"):
        if root := _option(words, name):
            return Path(root)
    settings = _option(words, "config-file")
    return _data_root(top / settings.lstrip("/")) if settings else None


def _option(words: Sequence[str], name: str) -> str:
    """Return the value of ``--NAME VALUE`` or ``--NAME=VALUE``; "" when it is not given."""
    for at, word in enumerate(words):
        if word == f"--{name}" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
    return ""


def _data_root(file: Path) -> Path | None:
    try:
        value: object = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    root = value.get("data-root", value.get("graph")) if isinstance(value, dict) else None
    return Path(root) if isinstance(root, str) and root else None


def _graph_root(file: Path) -> Path | None:
    try:
        storage: object = tomllib.loads(file.read_text(encoding="utf-8")).get("storage")
    except (OSError, ValueError):
        return None
    root = storage.get("graphroot") if isinstance(storage, dict) else None
    return Path(root) if isinstance(root, str) and root else None
