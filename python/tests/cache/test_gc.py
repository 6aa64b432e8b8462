"""What gc deletes and what it keeps, and what it says of it."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest
from gc_kit import Host, age, entry, in_trash

from ttstack.cache import gc
from ttstack.cache.gc import DAY_S
from ttstack.cache.lock import KeyLock
from ttstack.cache.registry import read_only
from ttstack.cache.survey import survey
from ttstack.cache.trash import to_trash
from ttstack.cache.types import TRASH, USED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ttstack.cache.gc import Report


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.close()


def told(report: Report) -> dict[str, tuple[str, str]]:
    return {entry.directory.path.name: (entry.verdict.decision, entry.verdict.reason) for entry in report.entries}


def test_what_nobody_uses_goes_and_the_rest_stays(host: Host) -> None:
    old, new = host.cache("old", days=31), host.cache("new", days=29)
    report = host.gc(keep_days=30)
    assert not old.exists()
    assert new.is_dir()
    assert told(report) == {old.name: ("deleted", "last used 31 days ago"), new.name: ("keep", "last used 29 days ago")}
    assert in_trash(host.root) == []
    assert set(read_only(host.root).markers) == {new.name}
    assert old.name in read_only(host.root).history  # what was measured outlives it


def test_the_last_use_counts_not_when_it_was_made(host: Host) -> None:
    folder = host.cache(days=400)
    used = time.time() - 2 * DAY_S
    os.utime(folder / USED, (used, used))
    host.gc(keep_days=30)
    assert folder.is_dir()


def test_broken_and_abandoned_ones_go_whatever_is_to_be_kept(host: Host) -> None:
    broken = host.cache("b", days=1, state="broken", reason="w.tensorbin: cut off")
    abandoned = host.cache("a", days=1, state="building")
    report = host.gc(keep_days=10_000)
    assert not broken.exists()
    assert not abandoned.exists()
    assert told(report) == {
        broken.name: ("deleted", "broken: w.tensorbin: cut off"),
        abandoned.name: ("deleted", "abandoned: run run-1 did not end it, and is gone"),
    }


def test_broken_ones_are_protected_like_any(host: Host) -> None:
    used, fresh = host.cache("u", state="broken", reason="x"), host.cache("f", state="broken", reason="x", days=0)
    host.containers["docker"] = [entry(str(used))]
    report = host.gc(keep_days=0)
    assert used.is_dir()
    assert fresh.is_dir()
    assert told(report)[used.name] == ("keep", "used by container engine (docker abababababab)")
    assert told(report)[fresh.name][1].startswith("made or used ")


def test_kernel_caches_go_too(host: Host) -> None:
    old, new = host.jit("a-ttnn-1", days=31), host.jit("b-ttnn-1", days=3)
    host.gc(keep_days=30)
    assert not old.exists()
    assert new.is_dir()


def test_what_is_not_ours_is_told_and_left(host: Host) -> None:
    (host.root / "notes").mkdir()
    (host.root / "0123456789abcdef").mkdir()
    (host.root / "0123456789abcdef" / "w.tensorbin").write_bytes(b"w")
    (host.root / "jit" / "foreign").mkdir(parents=True)
    report = host.gc(keep_days=0)
    assert {entry.verdict.decision for entry in report.entries} == {"keep"}
    assert len(survey(host.root)) == 3


def test_a_dry_run_says_what_a_run_does_and_does_nothing(host: Host) -> None:
    one, two = host.cache("1"), host.cache("2", state="broken", reason="x")
    kept, jit = host.cache("3", days=2), host.jit("a-b")
    os.link(one / "P150" / "w.tensorbin", two / "P150" / "link")
    os.link(kept / "P150" / "w.tensorbin", one / "P150" / "seed")
    thrown = to_trash(host.cache("4"))
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in host.root.rglob("*"))
    dry = host.gc(keep_days=30, dry_run=True)
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in host.root.rglob("*")) == before
    wet = host.gc(keep_days=30)
    assert [entry.directory.path for entry in wet.entries] == [entry.directory.path for entry in dry.entries]
    for planned, done in zip(dry.entries, wet.entries, strict=True):
        assert planned.verdict.decision == done.verdict.decision.removesuffix("d")
        assert (planned.verdict.reason, planned.verdict.uses) == (done.verdict.reason, done.verdict.uses)
        assert planned.weight == done.weight
    assert dry.freed == wet.freed > 0
    assert [path.exists() for path in (one, two, jit, thrown, kept)] == [False, False, False, False, True]


def test_a_dry_run_on_a_host_without_caches_makes_no_folder(host: Host) -> None:
    host.root.rmdir()
    assert host.gc(dry_run=True).entries == host.gc().entries == ()
    assert not host.root.exists()


def test_trash_is_emptied_first(host: Host) -> None:
    thrown = to_trash(host.cache("1"))
    folder = host.cache("2")
    report = host.gc(keep_days=0)
    assert [entry.directory.path for entry in report.entries] == [thrown, folder]
    assert told(report)[thrown.name] == ("deleted", "it was thrown away before")


def test_it_works_under_the_locks(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = host.cache()
    seen = []

    def spy(path: Path) -> Path:
        assert KeyLock(host.root, path.name).shared() is None
        with pytest.raises(BlockingIOError):
            _flock(host.root / ".ttx-locks" / "registry")
        seen.append(path)
        return to_trash(path)

    monkeypatch.setattr(gc, "to_trash", spy)
    host.gc(keep_days=0)
    assert seen == [folder]
    handle = KeyLock(host.root, folder.name).exclusive()
    assert handle is not None  # let go of
    os.close(handle)


def _flock(path: Path) -> None:
    import fcntl  # noqa: PLC0415 - here alone

    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_one_that_cannot_be_moved_is_told_and_the_others_go(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = sorted([host.cache("1"), host.cache("2")])
    rename = os.rename

    def refuse(source: object, target: object) -> None:
        if source == folders[0]:
            raise OSError(16, "Device or resource busy")
        rename(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", refuse)
    report = host.gc(keep_days=0)
    assert [folder.exists() for folder in folders] == [True, False]
    assert told(report)[folders[0].name][0] == "failed"
    assert "Device or resource busy" in told(report)[folders[0].name][1]


def test_a_marker_time_that_is_none_is_told(host: Host) -> None:
    folder = host.cache()
    marker = folder / ".ttx-cache.json"
    table = json.loads(marker.read_text())
    table["made"] = "yesterday"
    marker.write_text(json.dumps(table))
    age(folder, 40)
    host.gc(keep_days=0)
    assert folder.is_dir()


def test_a_network_disk_has_no_gc(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = host.cache()
    monkeypatch.setattr("ttstack.cache.lock.is_local", lambda _: False)
    assert "network" in host.gc(keep_days=0).unread[0]
    assert folder.is_dir()


def test_it_is_told_of_each_as_it_goes(host: Host) -> None:
    folder = host.cache()
    heard = []
    host.gc(keep_days=0, tell=lambda entry: heard.append((entry.directory.path, folder.exists())))
    assert heard == [(folder, False)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5 seconds"), (119, "119 seconds"), (121, "2 minutes"), (7201, "2 hours"), (200_000, "2 days")],
)
def test_ages_for_people(seconds: float, text: str) -> None:
    assert gc._ago(seconds) == text


def test_stray_trash_names(host: Host) -> None:
    (host.root / TRASH).mkdir()
    (host.root / TRASH / "odd").mkdir()
    (host.root / TRASH / "file").write_text("x")
    host.gc()
    assert [path.name for path in in_trash(host.root)] == ["file"]  # only folders are thrown there


def test_a_day_is_a_day(host: Host) -> None:
    folder = host.cache(days=10)
    used = (folder / USED).stat().st_mtime
    assert told(host.gc(keep_days=12, now=lambda: used + 12 * DAY_S - 0.5))[folder.name][0] == "keep"
    assert told(host.gc(keep_days=12, now=lambda: used + 12 * DAY_S))[folder.name][0] == "deleted"
