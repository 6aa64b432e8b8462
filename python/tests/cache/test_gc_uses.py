"""What gc does not know it does not delete: uses that change or cannot be learned while it is at work."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest
from gc_kit import Host, entry, in_trash
from gc_scenarios import container_late

from ttstack.cache import gc, uses
from ttstack.cache.errors import RegistryError
from ttstack.cache.gc import collect
from ttstack.cache.lock import KeyLock
from ttstack.cache.registry import locked
from ttstack.cache.survey import survey
from ttstack.cache.types import NEW, REGISTRY, USED
from ttstack.host import container_mounts
from ttstack.host.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ttstack.cache.gc import Report
    from ttstack.cache.types import Directory


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.close()


def told(report: Report) -> dict[str, tuple[str, str]]:
    return {entry.directory.path.name: (entry.verdict.decision, entry.verdict.reason) for entry in report.entries}


def test_an_unbelievable_registry_deletes_nothing(host: Host) -> None:
    folder = host.cache()
    (host.root / REGISTRY).write_text('{"schema": 99}')
    for dry_run in (True, False):
        with pytest.raises(RegistryError) as caught:
            host.gc(keep_days=0, dry_run=dry_run)
        assert caught.value.exit_code == 3
    assert folder.is_dir()


def test_uses_that_cannot_be_learned_any_more_end_it(host: Host) -> None:
    """Of two that may go the first goes; then docker is gone, and the second stays."""
    folders = sorted([host.cache("1"), host.cache("2")])
    host.containers["docker"] = []
    asked = 0

    def hook(argv: object) -> None:
        nonlocal asked
        asked += isinstance(argv, list) and argv[0] == "podman"
        if asked == 2:  # in the look before the first of them
            host.containers["docker"] = TimeoutError()

    host.hook = hook
    report = host.gc(keep_days=0)
    assert [folder.exists() for folder in folders] == [False, True]
    assert report.unread == ("docker did not answer within 10 s",)
    assert told(report)[folders[1].name] == ("keep", "it could not be learned who uses it")


def test_uses_are_asked_again_for_each(host: Host) -> None:
    for which in "123":
        host.cache(which)
    host.containers["docker"] = []
    host.gc(keep_days=0)
    asked = [call for call in host.calls if call[:3] == ["docker", "ps", "--all"]]
    assert len(asked) == 1 + 3
    host.calls.clear()
    host.gc(keep_days=0)
    assert len([call for call in host.calls if call[0] == "docker"]) == 1


def test_two_at_once_delete_each_once(host: Host) -> None:
    """The second begins while the first has decided, and finds nothing to do there."""
    folder = host.cache()
    inner: list[Report] = []
    host.boot_systemd()

    def hook(argv: Sequence[str]) -> None:
        if argv[0] == "systemctl":  # who is asked once the directories were looked at
            host.hook = lambda _: None
            inner.append(collect(replace(host.sources, run=host.answer), keep_days=0))

    host.hook = hook
    report = host.gc(keep_days=0)
    assert not folder.exists()
    assert [each.count("deleted") for each in (*inner, report)] == [1, 0]


def test_what_asking_an_engine_raises_is_never_nobody(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines are asked in a thread of their own, where a fault could be lost."""
    folder = host.cache()
    for error, text in (
        (OSError(5, "Input/output error", "podman"), "podman: Input/output error"),
        (HostError("x"), "x"),
    ):
        monkeypatch.setattr(container_mounts, "look", _raise(error))
        report = host.gc(keep_days=0)
        assert (report.unread, folder.is_dir()) == ((text,), True)
    monkeypatch.setattr(container_mounts, "look", _raise(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        host.gc(keep_days=0)
    assert folder.is_dir()


def _raise(error: Exception) -> Callable[..., NoReturn]:
    def look(**_: object) -> NoReturn:
        raise error

    return look


def test_what_was_learned_before_deletes_nothing(host: Host) -> None:
    """Neither by who calls, nor by gc itself as it looked first."""
    late = container_late(host)
    seed = host.cache("seed")
    starts = host.hook

    def hook(argv: Sequence[str]) -> None:
        starts(argv)
        if sum(call[0] == "podman" for call in host.calls) == 2 and argv[0] == "podman":
            host.cache("new", state="building", alive=True, seeded_from=seed.name)

    host.hook = hook
    host.sources = replace(host.sources, asked=lambda: ([], []), directories=())
    report = host.gc(keep_days=0)
    assert late.is_dir()
    assert seed.is_dir(), told(report)


def test_what_is_used_and_cannot_be_found_deletes_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = host.cache()
    (host.base / "loop").symlink_to("loop")
    host.containers["docker"] = [entry(f"{host.base}/loop")]
    (text,) = host.gc(keep_days=0).unread
    assert "loop, which cannot be looked at" in text
    assert folder.is_dir()
    host.containers.clear()

    def unreadable() -> NoReturn:
        raise HostError("cannot read mountinfo")

    monkeypatch.setattr(uses, "mount_points", unreadable)
    assert host.gc(keep_days=0).unread == ("cannot read mountinfo",)
    assert folder.is_dir()


@pytest.mark.parametrize(("shared", "reason"), [(True, "a run uses it"), (False, "it is being built")])
def test_a_dry_run_sees_locks_too(host: Host, *, shared: bool, reason: str) -> None:
    folder = host.cache()
    lock = KeyLock(host.root, folder.name)
    host.keep(lock.shared() if shared else lock.exclusive())
    assert told(host.gc(keep_days=0, dry_run=True)) == {folder.name: ("keep", reason)}


def test_what_a_killed_start_left_goes_and_what_one_is_making_stays(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = host.root / NEW
    new.mkdir()
    (new / USED).touch()
    assert told(host.gc(dry_run=True)) == {NEW: ("delete", "nothing was ever in it")}
    assert new.is_dir()
    assert told(host.gc()) == {NEW: ("deleted", "nothing was ever in it")}
    assert (new.exists(), in_trash(host.root)) == (False, [])
    new.mkdir()
    looked = threading.Event()
    reports: list[Report] = []

    def listed(root: Path) -> tuple[Directory, ...]:
        found = survey(root)
        looked.set()
        return found

    monkeypatch.setattr(gc, "survey", listed)
    other = threading.Thread(target=lambda: reports.append(host.gc()))
    with locked(host.root):
        other.start()
        assert looked.wait(10)
        new.rename(host.root / ("0" * 16))
    other.join(10)
    assert told(reports[0]) == {}
    assert (host.root / ("0" * 16)).is_dir()


def test_files_of_others_in_the_place_of_a_new_directory_stay(host: Host) -> None:
    (host.root / NEW).mkdir()
    (host.root / NEW / "letter").touch()
    assert told(host.gc(keep_days=0)) == {NEW: ("keep", "not ours")}
    assert (host.root / NEW / "letter").exists()
