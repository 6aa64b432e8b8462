"""Kill -9 at random moments of gc and of builds: what is left says what it is, and the next gc ends what was begun."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from gc_kit import INPUTS, Host, builder, entry, in_trash
from seed_kit import tensor

from ttstack.cache import settle
from ttstack.cache.build import Start, begin
from ttstack.cache.lock import state
from ttstack.cache.manifest import scan
from ttstack.cache.marker import key_of
from ttstack.cache.registry import read_only
from ttstack.cache.survey import survey
from ttstack.cache.types import TRASH
from ttstack.cache.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROUNDS = int(os.environ.get("TTX_TEST_ROUNDS", "8"))  # the check `cache` asks for more
FILES = 30
OLD = 40 * 86400.0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a killed process loses nothing that it wrote
    host = Host(tmp_path)
    yield host
    host.close()


def fill(host: Host) -> tuple[list[Path], list[Path]]:
    """Make caches that may go, and others that are used."""
    going = [host.cache(f"old-{at}", files=FILES) for at in range(3)]
    going += [host.cache("broken", files=FILES, state="broken", reason="x"), host.jit("a-b")]
    going += [host.cache("left", files=FILES, state="building")]
    used = [host.cache("used-1", files=FILES), host.cache("used-2", files=FILES)]
    host.containers["docker"] = [entry(*map(str, used))]
    return going, used


def child(work: Callable[[], None]) -> int:
    """Do something in a process of its own, which says when it is ready; return its pid."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(told, b"x")
            work()
            code = 0
        finally:
            os._exit(code)
    os.close(told)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    return pid


def killed_at(pid: int, seconds: float) -> bool:
    """Kill a child after a time; say whether it was still at work."""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def whole_time(work: Callable[[], None]) -> float:
    start = time.monotonic()
    _, status = os.waitpid(child(work), 0)
    assert status == 0
    return time.monotonic() - start


def check_all_is_told(host: Host) -> dict[str, str]:
    """Every directory is complete and true, or has a dead owner, or is broken, or lies in the trash."""
    standings = {}
    for directory in survey(host.root):
        if directory.standing == "unmarked":
            assert scan(directory.path) == ()  # a start was killed as it had made the folder and nothing in it
            continue
        assert directory.standing in {"complete", "abandoned", "broken", "trash"}, directory
        standings[directory.path.name] = directory.standing
        if directory.standing == "complete" and directory.path.parent == host.root:
            assert verify(directory.path) == ()
    assert set(read_only(host.root).markers) >= {n for n, s in standings.items() if s != "trash" and "-" not in n}
    return standings


def test_gc_is_killed_and_run_again(host: Host, tmp_path: Path) -> None:
    limit = None
    at_work = 0
    for number in range(ROUNDS):
        host.base.joinpath("cache").rename(tmp_path / f"done-{number}")
        host.root.mkdir()
        going, used = fill(host)
        if limit is None:
            limit = whole_time(lambda: host.gc(keep_days=0) and None)
            assert not any(folder.exists() for folder in going)
            continue
        at_work += killed_at(child(lambda: host.gc(keep_days=0) and None), random.uniform(0, limit))  # noqa: S311
        check_all_is_told(host)
        assert all(state(host.root, folder.name) == "free" for folder in used)
        for folder in used:
            assert len(scan(folder)) == FILES
        host.gc(keep_days=0)
        assert not any(folder.exists() for folder in going)
        assert in_trash(host.root) == []
        assert all(verify(folder) == () for folder in used)
    assert at_work or ROUNDS < 4, "no kill met it at work"


def build(host: Host, inputs: dict[str, object]) -> None:
    """Do what a run does for a cache, from its start to its being complete."""
    key = key_of(inputs)
    start = Start(host.root, host.base / "locks", key, inputs, builder(alive=True))
    held = begin(start, lambda _: 10_000)
    if held.warmth != "hit":
        for at in range(5):
            (held.folder / f"w{at}.tensorbin").write_bytes(tensor(b"w" * 200))
        settle.complete(host.root, key, "run-1", held.lock)
    os.close(held.lock)


def test_builds_and_their_marks_are_killed(host: Host) -> None:
    inputs = [INPUTS | {"env": {"N": str(at)}} for at in range(3)]

    def work() -> None:
        for each in inputs:
            build(host, each)

    limit = whole_time(work)
    assert {directory.standing for directory in survey(host.root)} == {"complete"}
    for _ in range(ROUNDS):
        host.gc(keep_days=0, now=lambda: time.time() + OLD)
        assert all(each.standing == "unmarked" for each in survey(host.root))
        killed_at(child(work), random.uniform(0, limit))  # noqa: S311 - no secret
        standings = check_all_is_told(host)
        work()  # the next starts take what is whole, and build the rest anew
        assert {directory.standing for directory in survey(host.root)} <= {"complete", "trash"}
        for key, standing in standings.items():
            if standing == "complete":
                assert (host.root / key).is_dir()
    assert not (host.root / TRASH).is_symlink()
