"""Bind mounts, which only root makes: other paths to a cache, other mount namespaces, and mounts in a cache."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest
from gc_kit import Host, entry, in_trash
from mount_kit import bind, tmpfs

from ttstack.cache import gc, uses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ttstack.cache.gc import Report

pytestmark = [pytest.mark.host, pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.close()


@pytest.fixture
def other_path(host: Host, tmp_path: Path) -> Iterator[Path]:
    """The root once more, by a bind mount."""
    (tmp_path / "mnt").mkdir()
    with bind(host.root, tmp_path / "mnt") as place:
        yield place


def why(report: Report, folder: Path) -> tuple[str, str]:
    (verdict,) = (each.verdict for each in report.entries if each.directory.path == folder)
    return verdict.decision, verdict.reason


def no_source(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(uses.LOOKS, name, lambda *_: ([], []))


@pytest.mark.parametrize("below", ["", "/P150"])
def test_a_mount_by_another_path_is_the_same_cache(host: Host, other_path: Path, below: str) -> None:
    folder, free = host.cache(), host.cache("free")
    host.containers["docker"] = [entry(f"{other_path}/{folder.name}{below}")]
    host.gc(keep_days=0)
    assert folder.is_dir()
    assert not free.exists()


def test_what_lies_above_the_source_of_the_roots_own_mount(host: Host, tmp_path: Path) -> None:
    """The root is a bind mount of disk/caches, and a container mounts the disk: no path of one holds the other."""
    (tmp_path / "disk" / "caches").mkdir(parents=True)
    with bind(tmp_path / "disk" / "caches", host.root):
        folder = host.cache()
        host.containers["docker"] = [entry(str(tmp_path / "disk"))]
        report = host.gc(keep_days=0)
        assert folder.is_dir()
        assert why(report, folder)[1].startswith("used by container engine")
        host.containers["docker"] = []
        host.gc(keep_days=0)
        assert not folder.exists()


def namespace(*words: str) -> subprocess.Popen[str]:
    """Start a shell in a mount namespace of its own; it ends when its input does."""
    pipe = subprocess.PIPE
    script = " && ".join([*words, "echo up", "read end"])
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    return process


def test_a_container_that_no_engine_tells_of(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's podman, or an engine that nobody knows: its mounts are in a namespace of its own."""
    folder, free = host.cache(), host.cache("free")
    (tmp_path / "in").mkdir()
    stranger = namespace(f"mount --bind {folder} {tmp_path}/in")
    try:
        report = host.gc(keep_days=0)
        assert folder.is_dir()
        assert not free.exists()
        assert f"pid {stranger.pid} (sh -c " in why(report, folder)[1]
        no_source(monkeypatch, "mounts")
        monkeypatch.setattr(gc, "mounted_now", uses.uses)
        host.gc(keep_days=0)
        assert not folder.exists()  # so it was this look alone that kept it
    finally:
        stranger.communicate("\n", timeout=10)


def test_one_that_comes_between_the_look_and_the_rename(host: Host, tmp_path: Path) -> None:
    """It has the directory, which is in the trash by then: it stays there until nobody has it."""
    folder = host.cache()
    (tmp_path / "in").mkdir()
    started: list[subprocess.Popen[str]] = []
    looked = [threading.Event(), threading.Event()]

    def hook(argv: object) -> None:
        # podman is asked in each look; the mounts of the second one are read by then.
        if isinstance(argv, list) and argv[0] == "podman":
            looks = sum(call[0] == "podman" for call in host.calls)
            if looks == 2:
                assert looked[1].wait(10)
                started.append(namespace(f"mount --bind {folder} {tmp_path}/in"))

    looks = dict(uses.LOOKS)

    def mounts(*asked: Any) -> Any:  # noqa: ANN401 - as it is called
        told = looks["mounts"](*asked)
        looked[looked[0].is_set()].set()
        return told

    try:
        uses.LOOKS.clear()
        uses.LOOKS.update({"mounts": mounts, **{k: v for k, v in looks.items() if k != "mounts"}})
        host.hook = hook
        report = host.gc(keep_days=0)
        assert why(report, folder)[1].startswith("thrown away, but still used by pid ")
        assert len(in_trash(host.root)) == 1
        host.hook = lambda _: None
        host.gc(keep_days=0)
        assert len(in_trash(host.root)) == 1  # still
    finally:
        uses.LOOKS.clear()
        uses.LOOKS.update(looks)
        for process in started:
            process.communicate("\n", timeout=10)
    host.gc(keep_days=0)
    assert in_trash(host.root) == []


def test_a_sandboxed_service_does_not_keep_the_whole_root(host: Host) -> None:
    """ReadWritePaths= mounts the root onto itself in the service's own namespace (systemd.exec(5))."""
    folder = host.cache()
    service = namespace(f"mount --bind {host.root} {host.root}")
    try:
        host.gc(keep_days=0)
        assert not folder.exists()
    finally:
        service.communicate("\n", timeout=10)


def test_a_stranger_with_the_whole_root_keeps_all(host: Host, tmp_path: Path) -> None:
    folder = host.cache()
    (tmp_path / "in").mkdir()
    stranger = namespace(f"mount --bind {host.root} {tmp_path}/in")
    try:
        host.gc(keep_days=0)
        assert folder.is_dir()
    finally:
        stranger.communicate("\n", timeout=10)


def test_a_cache_with_something_mounted_in_it_stays(host: Host) -> None:
    folder = host.cache()
    (folder / "m").mkdir()
    with tmpfs(folder / "m"):
        (folder / "m" / "letter").write_text("x")
        report = host.gc(keep_days=0)
        assert why(report, folder)[1] == f"used by a mount on {folder}/m"
        assert (folder / "m" / "letter").exists()
