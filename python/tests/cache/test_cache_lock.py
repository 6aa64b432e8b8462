"""A key's lock: who gets it, who sees it, and that looking at it disturbs nobody."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from ttstack.cache import lock
from ttstack.cache.errors import CacheError
from ttstack.cache.lock import KeyLock, is_local, lock_folder, state, to_shared
from ttstack.cache.types import LOCKS
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0123456789abcdef"


def took(handle: int | None) -> int:
    assert handle is not None
    return handle


def test_readers_share_and_a_builder_is_alone(tmp_path: Path) -> None:
    key = KeyLock(tmp_path, KEY)
    assert state(tmp_path, KEY) == "free"
    assert not (tmp_path / LOCKS).exists()  # looking makes nothing
    first, second = took(key.shared()), took(key.shared())
    assert state(tmp_path, KEY) == "shared"
    assert key.exclusive() is None
    os.close(first)
    os.close(second)
    alone = took(key.exclusive())
    assert state(tmp_path, KEY) == "exclusive"
    assert key.shared() is None
    assert key.exclusive() is None
    assert state(tmp_path, "f" * 16) == "free"
    os.close(alone)
    assert state(tmp_path, KEY) == "free"
    assert key.path.exists()


def test_children_get_it_only_when_it_is_given_to_them(tmp_path: Path) -> None:
    handle = took(KeyLock(tmp_path, KEY).exclusive())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as other:
        os.close(handle)
        assert wait_until(lambda: state(tmp_path, KEY) == "free", 10)  # its copy goes as it becomes the program
        other.communicate(b"\n")
    handle = took(KeyLock(tmp_path, KEY).exclusive())
    words = [sys.executable, "-c", "input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=(handle,)) as heir:
        os.close(handle)
        assert state(tmp_path, KEY) == "exclusive"
        heir.communicate(b"\n")
    assert state(tmp_path, KEY) == "free"


def test_a_builders_lock_becomes_a_readers_in_all_its_copies(tmp_path: Path) -> None:
    key = KeyLock(tmp_path, KEY)
    handle = took(key.exclusive())
    copy = os.dup(handle)
    to_shared(tmp_path, handle)
    os.close(handle)
    reader = took(key.shared())
    assert key.exclusive() is None
    os.close(reader)
    assert state(tmp_path, KEY) == "shared"
    os.close(copy)


def test_who_is_the_only_reader_is_told_and_keeps_the_lock(tmp_path: Path) -> None:
    key = KeyLock(tmp_path, KEY)
    first = took(key.shared())
    assert lock.alone(tmp_path, first)
    assert state(tmp_path, KEY) == "shared"
    second = took(key.shared())
    assert not lock.alone(tmp_path, first)
    os.close(second)
    assert state(tmp_path, KEY) == "shared"  # the first is still there
    assert key.exclusive() is None
    os.close(first)


def test_nobody_gets_in_while_it_is_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = KeyLock(tmp_path, KEY)
    handle = took(key.exclusive())
    real = fcntl.flock
    thief: list[int | None] = []

    def slowly(number: int, how: int) -> None:
        if number == handle and how & fcntl.LOCK_SH:
            real(number, fcntl.LOCK_UN)  # the moment between, as long as it takes
            monkeypatch.setattr(lock, "_GUARD_S", 0.05)
            with pytest.raises(CacheError, match="stayed locked"):
                thief.append(key.exclusive())
        real(number, how)

    monkeypatch.setattr(fcntl, "flock", slowly)
    to_shared(tmp_path, handle)
    assert thief == []
    os.close(handle)


def test_looking_makes_no_start_fail(tmp_path: Path) -> None:
    key = KeyLock(tmp_path, KEY)
    os.close(took(key.shared()))
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            assert state(tmp_path, KEY) in {"free", "shared", "exclusive"}

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(150):
            os.close(took(key.shared()))
            os.close(took(key.exclusive()))
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()


@pytest.mark.parametrize("name", ["registry", "../../x", "0123456789ABCDEF", "", "0123456789abcdef0"])
def test_what_is_no_key_has_no_lock(tmp_path: Path, name: str) -> None:
    with pytest.raises(CacheError, match="no key"):
        KeyLock(tmp_path, name)


def test_what_is_in_a_locks_place_is_told(tmp_path: Path) -> None:
    key = KeyLock(tmp_path, KEY)
    (lock_folder(tmp_path) / KEY).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CacheError, match="cannot open"):
        key.shared()
    assert not (tmp_path / "elsewhere").exists()
    for _ in range(2):  # a link that leads nowhere, and then to a file
        with pytest.raises(CacheError, match="cannot look"):
            state(tmp_path, KEY)
        (tmp_path / "elsewhere").touch()
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="folder of locks"):
        KeyLock(tmp_path / "file", KEY).shared()


MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 0:50 / /srv rw,relatime shared:3 - nfs4 host:/srv rw
41 40 8:2 / /srv/disk rw - xfs /dev/sdb rw
42 22 0:51 / /mnt/my\\040disk rw - fuse.sshfs host: rw
43 22 0:52 / /over rw - xfs /dev/sdc rw
44 43 0:53 / /over rw - nfs host:/over rw
"""


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/var/cache", True),
        ("/srv/cache", False),
        ("/srv", False),
        ("/srvx", True),
        ("/srv/disk/cache", True),
        ("/mnt/my disk/c", False),
        ("/over/x", False),
    ],
)
def test_locks_on_a_network_are_known(tmp_path: Path, path: str, local: bool) -> None:  # noqa: FBT001 - a row
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert is_local(type(tmp_path)(path), mounts) is local
    mounts.unlink()
    with pytest.raises(CacheError, match="cannot read"):
        is_local(tmp_path, mounts)


def test_this_very_folder_can_be_told(tmp_path: Path) -> None:
    assert isinstance(is_local(tmp_path / "not" / "there"), bool)
