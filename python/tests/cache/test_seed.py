"""How the files of one cache get into another, also when that is killed."""

from __future__ import annotations

import errno
import os
import random
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from seed_kit import (
    FIRST,
    INPUTS,
    INSIDE,
    NAMES,
    begin,
    builder,
    complete,
    files_of,
    finish,
    no_reflink,
    pair,
    with_env,
)

from ttstack.cache import transfer
from ttstack.cache.manifest import scan
from ttstack.cache.seed import seed
from ttstack.cache.seed_check import check_seeds
from ttstack.cache.survey import standing_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["pair"]


def test_hard_links_where_the_engine_renames(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    done = seed(source, target, by_rename=True)
    assert (done.method, done.files, done.counts, done.source) == ("hardlink", 2, {"hardlink": 2}, source.name)
    assert done.bytes == sum(entry.size for entry in scan(source))
    assert files_of(target) == files_of(source)
    assert (target / FIRST).samefile(source / FIRST)


def test_never_a_hard_link_where_the_engine_writes_in_place(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    assert seed(source, target, by_rename=False).counts == {"copy": 2}
    assert files_of(target) == files_of(source)
    assert scan(target) == scan(source)  # times, too
    assert not (target / FIRST).samefile(source / FIRST)


def test_mode_owner_and_folders_are_kept_by_a_copy(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    (source / FIRST).chmod(0o640)
    (source / INSIDE).chmod(0o750)
    if os.geteuid() == 0:
        os.chown(source / FIRST, 1000, 1001)
        os.chown(source / INSIDE, 1000, 1001)
    seed(source, target, by_rename=False)
    for path in (FIRST, INSIDE):
        mine, theirs = (target / path).stat(), (source / path).stat()
        assert (mine.st_mode, mine.st_uid, mine.st_gid) == (theirs.st_mode, theirs.st_uid, theirs.st_gid)


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_a_refused_link_becomes_a_copy(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    no_reflink(monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    assert seed(*pair, by_rename=True).counts == {"copy": 2}
    assert files_of(pair[1]) == files_of(pair[0])


def test_one_file_that_has_all_the_names_it_may_have_is_copied(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_reflink(monkeypatch)
    link = os.link

    def once(*names: str, **folders: int) -> None:
        if names[0] == NAMES[1]:
            raise OSError(errno.EMLINK, "Too many links")
        link(*names, **folders)

    monkeypatch.setattr(os, "link", once)
    assert seed(*pair, by_rename=True).counts == {"hardlink": 1, "copy": 1}


def test_where_the_kernel_copies_no_range_it_sends(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)

    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(transfer, "CHUNK", 7)
    seed(*pair, by_rename=False)
    assert files_of(pair[1]) == files_of(pair[0])


def test_progress_ends_with_all_of_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)
    monkeypatch.setattr(transfer, "CHUNK", 1 << 20)
    source = pair[0]
    (source / FIRST).write_bytes(bytes(3 << 20))
    finish(source)
    told: list[tuple[int, int]] = []
    seed(*pair, by_rename=False, progress=lambda done, total: told.append((done, total)))
    total = sum(entry.size for entry in scan(source))
    assert told[-1] == (total, total)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) >= 4  # a large file tells more than once


def _killed_at(moment: int, action: Callable[[], object]) -> bool:
    """Run it in a child that is killed as it calls its so manieth function written in C; False when it ended before."""
    pid = os.fork()
    if not pid:
        left = moment

        def watch(_frame: object, event: str, _argument: object) -> None:
            nonlocal left
            if event == "c_call":
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(watch)
            action()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("by_rename", [True, False])
def test_killed_at_any_moment_nothing_is_lost_and_nothing_half_done_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_rename: bool
) -> None:
    no_reflink(monkeypatch)
    whole = complete(tmp_path, INPUTS)
    content = files_of(whole)
    moments = random.Random(7)  # noqa: S311 - any will do
    killed = 0
    for at in range(50):
        target = begin(tmp_path, with_env(HEAD_BF4=str(at)), builder=builder(alive=False))
        killed += _killed_at(moments.randrange(1, 450), lambda to=target: seed(whole, to, by_rename=by_rename))  # type: ignore[misc]
        assert standing_of(target).standing == "abandoned"
        for path, data in files_of(target).items():
            assert path in content or "/.ttx-seed." in path
            assert data == content.get(path, data)
        assert (standing_of(whole).standing, files_of(whole)) == ("complete", content)
    assert killed > 25
    again = begin(tmp_path, with_env(MLP_BF4="1"))
    assert seed(whole, again, by_rename=by_rename).files == len(content)
    assert check_seeds(again).changed == ()
