"""Kill -9 at random moments of gc, of builds and of the registry: what is left says what it is, and can be ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from gc_kit import INPUTS, Host, builder, entry, in_trash
from kill_kit import ROUNDS, Killer
from seed_kit import tensor

from ttstack.cache import dirs, settle
from ttstack.cache.build import Start, begin
from ttstack.cache.errors import RegistryError
from ttstack.cache.lock import state
from ttstack.cache.manifest import scan
from ttstack.cache.marker import key_of
from ttstack.cache.registry import locked, read_only, rebuild
from ttstack.cache.survey import survey
from ttstack.cache.trash import discard
from ttstack.cache.types import REGISTRY, TRASH
from ttstack.cache.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


def check_all_is_told(host: Host) -> dict[str, str]:
    """Every directory is complete and true, or building with a dead owner, or broken, or trash: there is no other."""
    standings = {}
    for directory in survey(host.root):
        assert directory.standing in {"complete", "abandoned", "broken", "trash"}, directory
        standings[directory.path.name] = directory.standing
        if directory.standing == "complete":
            assert directory.used is not None
            assert directory.path.parent != host.root or verify(directory.path) == ()
    seen = {path.rpartition("/")[2] for path in read_only(host.root).markers}
    assert seen == {name for name, standing in standings.items() if standing != "trash"}
    return standings


def test_gc_is_killed_and_run_again(host: Host, tmp_path: Path) -> None:
    rounds = 0

    def fresh() -> tuple[list[Path], list[Path]]:
        nonlocal rounds
        rounds += 1
        host.base.joinpath("cache").rename(tmp_path / f"done-{rounds}")
        host.root.mkdir()
        return fill(host)

    going, _ = fresh()
    gc = Killer(lambda: host.gc(keep_days=0))
    assert not any(folder.exists() for folder in going)
    for _ in range(ROUNDS):
        going, used = fresh()
        gc.kill()
        check_all_is_told(host)
        assert all(state(host.root, folder.name) == "free" for folder in used)
        for folder in used:
            assert len(scan(folder)) == FILES
        host.gc(keep_days=0)
        assert not any(folder.exists() for folder in going)
        assert in_trash(host.root) == []
        assert all(verify(folder) == () for folder in used)
    gc.check()


def build(host: Host, inputs: dict[str, object]) -> None:
    """Do what a run does for a cache, from its start to its being complete."""
    key = key_of(inputs)
    start = Start(host.root, host.base / "locks", key, inputs, builder(alive=True))
    held = begin(start, lambda _: 10_000)
    dirs.mark_jit(host.root / "jit" / f"{key}-sim", start.builder, None)
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

    starts = Killer(work)
    assert [directory.standing for directory in survey(host.root)] == ["complete"] * 6
    for _ in range(ROUNDS):
        host.gc(keep_days=0, now=lambda: time.time() + OLD)
        assert survey(host.root) == ()
        starts.kill()
        standings = check_all_is_told(host)
        work()  # the next starts take what is whole, and build the rest anew
        assert {directory.standing for directory in survey(host.root)} <= {"complete", "trash"}
        for key, standing in standings.items():
            if standing == "complete" and not key.endswith("-sim"):
                assert (host.root / key).is_dir()
    assert not (host.root / TRASH).is_symlink()
    starts.check()


def test_the_registry_is_killed_as_it_is_written_and_loses_no_measurement(host: Host) -> None:
    file = host.root / REGISTRY
    gone = host.cache("gone")
    with locked(host.root):
        pass
    discard(gone)
    stale = file.read_bytes()  # it knows one that is gone, and not those that come
    folders = {host.cache(f"new-{at}").name for at in range(4)}

    def work() -> None:
        with suppress(RegistryError), locked(host.root):
            pass
        rebuild(host.root)

    writes = Killer(work)
    for number in range(ROUNDS):
        data = stale[:-20] if number % 3 == 2 else stale
        file.write_bytes(data)
        writes.kill()
        if number % 3 == 2:  # one that cannot be believed is nowhere overwritten
            assert data in {path.read_bytes() for path in host.root.glob(f"{REGISTRY}*")}
            rebuild(host.root)
        known = read_only(host.root)
        assert gone.name in known.history
        assert set(known.markers) == folders
        assert set(check_all_is_told(host).values()) == {"complete"}
    writes.check()
