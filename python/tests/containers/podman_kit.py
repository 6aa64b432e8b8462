"""A podman that keeps all of its own in one folder, so that what else it has on this host stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# No service manager is needed for these. The limits are those that root has without CAP_SYS_RESOURCE, too.
CONTAINERS = """\
[engine]
{runtime}
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
"""
STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'


class UnusableError(Exception):
    """Podman does not work here; the text says why."""


@contextmanager
def own_podman(archive: Path) -> Iterator[Mapping[str, str]]:
    """Give the environment in which podman is this one; it holds the image of an archive. Raises UnusableError."""
    if os.geteuid() != 0 or shutil.which("podman") is None:
        raise UnusableError("no podman here, or not root")
    bridge = _bridge_that_is_not_there()
    folder = Path(tempfile.mkdtemp(prefix="ttxp"))  # short: podman takes no long names here
    env: dict[str, str] = {}
    try:
        env = _first_that_works(folder, archive)
        yield env
    finally:
        if env:
            podman(env, "rm", "--all", "--force", "--time", "1")
        _tidy_up(folder)
        if bridge:
            subprocess.run(["ip", "link", "delete", bridge], capture_output=True, check=False)


def podman(env: Mapping[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Call it."""
    environ = {**os.environ, **env}
    return subprocess.run(["podman", *words], capture_output=True, text=True, env=environ, timeout=120, check=False)


def _first_that_works(folder: Path, archive: Path) -> dict[str, str]:
    """Try the drivers of storage: overlay is quick, and does not work on every file system."""
    runtime = 'runtime = "runc"' if shutil.which("runc", path=f"{os.environ['PATH']}:/usr/sbin") else ""
    (folder / "containers.conf").write_text(CONTAINERS.format(runtime=runtime))
    env = {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    why = ""
    for driver in ("overlay", "vfs"):
        place = folder / driver
        (folder / "storage.conf").write_text(STORAGE.format(driver=driver, folder=place))
        done = podman(env, "load", "--quiet", "--input", archive)
        if done.returncode == 0:
            name = done.stdout.split()[-1]
            done = podman(env, "run", "--rm", "--publish", "127.0.0.1::80", "--pull", "never", name)
        if done.returncode == 0:
            return env
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    raise UnusableError(f"podman starts no container here: {why}")


def _bridge_that_is_not_there() -> str:
    """Name the bridge of podman's default network, which its first container makes; "" when it is there already."""
    done = podman({}, "network", "inspect", "podman")
    if done.returncode:
        return ""
    (network,) = json.loads(done.stdout)
    name = str(network.get("network_interface", ""))
    return "" if not name or Path("/sys/class/net", name).exists() else name


def _tidy_up(folder: Path) -> None:
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", place], check=True)  # podman mounts its storage on itself
    shutil.rmtree(folder)
