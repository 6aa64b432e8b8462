"""Which cache another may begin with, how its files get there, and what a build must not do to them."""

from __future__ import annotations

import errno
import os
import random
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from seed_kit import (
    IN_NAME,
    INPUTS,
    INSIDE,
    NAMES,
    OLD,
    begin,
    builder,
    complete,
    files_of,
    finish,
    with_env,
    write_files,
)

from ttstack.cache import transfer
from ttstack.cache.errors import CacheError, CacheRefusedError
from ttstack.cache.lock import KeyLock
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, read_marker, write_marker
from ttstack.cache.seed import choose, seed
from ttstack.cache.seed_check import check_seeds
from ttstack.cache.seed_record import SEEDS
from ttstack.cache.survey import standing_of
from ttstack.cache.types import FileEntry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = f"{INSIDE}/{NAMES[0]}"
BF4 = with_env(HEAD_BF4="1")


def _choice(
    root: Path, inputs: dict[str, object], in_name: tuple[str, ...] = IN_NAME, checkpoint: str = ""
) -> str | None:
    return choose(root, inputs, in_name=in_name, checkpoint=checkpoint).key


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return a complete cache, and one whose building begins."""
    return complete(tmp_path, INPUTS), begin(tmp_path, BF4)


# --- which ---------------------------------------------------------------------------------------------------------


def test_a_cache_that_differs_only_in_what_goes_into_names_is_chosen(tmp_path: Path) -> None:
    source = complete(tmp_path, INPUTS)
    assert _choice(tmp_path, BF4) == source.name
    assert _choice(tmp_path, with_env(HEAD_BF4="1", MLP_BF4="0")) == source.name


@pytest.mark.parametrize(
    "name", ["version", "model", "revision", "mesh", "dtype", "optimizations", "format", "a later ttx's own"]
)
def test_any_other_input_that_differs_forbids_it(tmp_path: Path, name: str) -> None:
    complete(tmp_path, INPUTS)
    other = BF4 | {name: "another"}
    assert _choice(tmp_path, other) is None
    if name != "model":
        assert name in choose(tmp_path, other, in_name=IN_NAME, checkpoint="").reason


def test_an_input_that_is_missing_here_forbids_it(tmp_path: Path) -> None:
    complete(tmp_path, INPUTS | {"more": 1})
    assert _choice(tmp_path, BF4) is None


def test_a_variable_that_the_catalogue_does_not_name_forbids_it(tmp_path: Path) -> None:
    complete(tmp_path, with_env(GDN_BF4="1"))
    assert _choice(tmp_path, with_env(HEAD_BF4="1")) is None
    assert _choice(tmp_path, with_env(GDN_BF4="0", HEAD_BF4="1")) is None
    assert _choice(tmp_path, with_env(GDN_BF4="1", HEAD_BF4="1")) is not None
    reason = choose(tmp_path, BF4, in_name=IN_NAME, checkpoint="").reason
    assert "variable GDN_BF4" in reason


def test_without_a_word_of_the_catalogue_there_is_no_seeding(tmp_path: Path) -> None:
    complete(tmp_path, INPUTS)
    chosen = choose(tmp_path, BF4, in_name=(), checkpoint="")
    assert chosen.key is None
    assert "the catalogue names no variable" in chosen.reason


def test_another_checkpoint_forbids_it(tmp_path: Path) -> None:
    complete(tmp_path, INPUTS, checkpoint="aa")
    assert _choice(tmp_path, BF4, checkpoint="bb") is None
    assert _choice(tmp_path, BF4, checkpoint="") is None
    assert _choice(tmp_path, BF4, checkpoint="aa") is not None


def test_only_complete_caches_count(tmp_path: Path) -> None:
    begin(tmp_path, INPUTS)
    broken = begin(tmp_path, with_env(MLP_BF4="1"))
    write_files(broken)
    finish(broken, "broken", "")
    assert _choice(tmp_path, BF4) is None


@pytest.mark.parametrize("harm", ["shorter", "missing", "empty"])
def test_a_cache_that_does_not_verify_is_never_a_seed(tmp_path: Path, harm: str) -> None:
    source = complete(tmp_path, INPUTS)
    file = source / FIRST
    if harm == "missing":
        file.unlink()
    else:
        os.truncate(file, 0 if harm == "empty" else 3)
    chosen = choose(tmp_path, BF4, in_name=IN_NAME, checkpoint="")
    assert chosen.key is None
    assert "not whole" in chosen.reason


def test_the_one_that_differs_least_comes_first_then_the_newest(tmp_path: Path) -> None:
    complete(tmp_path, with_env(MLP_BF4="1"))
    least = complete(tmp_path, INPUTS)
    assert _choice(tmp_path, BF4) == least.name
    newer = begin(tmp_path, with_env(HEAD_BF4="2"))
    write_files(newer)
    finish(newer, completed="2031-01-01T00:00:00Z")
    assert _choice(tmp_path, BF4) == newer.name
    (newer / FIRST).unlink()
    assert _choice(tmp_path, BF4) == least.name


# --- how -----------------------------------------------------------------------------------------------------------


def _no_reflink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_clone", lambda *_: False)


def test_hard_links_where_the_engine_renames(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)
    source, target = pair
    done = seed(source, target, by_rename=True)
    assert (done.method, done.files, done.counts, done.source) == ("hardlink", 2, {"hardlink": 2}, source.name)
    assert done.bytes == sum(entry.size for entry in scan(source))
    assert files_of(target) == files_of(source)
    assert (target / FIRST).samefile(source / FIRST)


def test_never_a_hard_link_where_the_engine_writes_in_place(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_reflink(monkeypatch)
    source, target = pair
    assert seed(source, target, by_rename=False).counts == {"copy": 2}
    assert files_of(target) == files_of(source)
    assert scan(target) == scan(source)  # times, too
    assert not (target / FIRST).samefile(source / FIRST)


def test_mode_owner_and_folders_are_kept_by_a_copy(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)
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
    _no_reflink(monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    assert seed(*pair, by_rename=True).counts == {"copy": 2}
    assert files_of(pair[1]) == files_of(pair[0])


def test_one_file_that_has_all_the_names_it_may_have_is_copied(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_reflink(monkeypatch)
    link = os.link

    def once(*names: str, **folders: int) -> None:
        if names[0] == NAMES[1]:
            raise OSError(errno.EMLINK, "Too many links")
        link(*names, **folders)

    monkeypatch.setattr(os, "link", once)
    assert seed(*pair, by_rename=True).counts == {"hardlink": 1, "copy": 1}


def test_where_the_kernel_copies_no_range_it_sends(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)

    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(transfer, "CHUNK", 7)
    seed(*pair, by_rename=False)
    assert files_of(pair[1]) == files_of(pair[0])


def test_progress_ends_with_all_of_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)
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


# --- what must not happen --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["link", "folder link", "pipe"])
@pytest.mark.parametrize("by_rename", [True, False])
def test_no_link_is_followed(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str, *, by_rename: bool
) -> None:
    _no_reflink(monkeypatch)
    source, target = pair
    secret = tmp_path / "elsewhere"
    (source / INSIDE).rename(secret)
    if how == "folder link":
        (source / INSIDE).symlink_to(secret)
    else:
        (source / INSIDE).mkdir()
        for name in NAMES:
            if how == "link":
                (source / INSIDE / name).symlink_to(secret / name)
            else:
                os.mkfifo(source / INSIDE / name)
    with pytest.raises(CacheError):
        seed(source, target, by_rename=by_rename)
    assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names


@pytest.mark.parametrize("by_rename", [True, False])
def test_a_link_that_a_manifest_tells_of_is_no_file(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, *, by_rename: bool
) -> None:
    """Its own size and time are those of the manifest, so only its kind tells."""
    _no_reflink(monkeypatch)
    source, target = pair
    (source / FIRST).rename(source / INSIDE / "other")
    (source / FIRST).symlink_to("other")
    seen = (source / FIRST).lstat()
    write_manifest(source, [FileEntry(FIRST, seen.st_size, seen.st_mtime_ns)])
    with pytest.raises(CacheError):
        seed(source, target, by_rename=by_rename)
    assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names


def test_a_target_whose_folder_is_a_link_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = pair
    outside = tmp_path / "outside"
    outside.mkdir()
    (target / "P150x2").symlink_to(outside)
    with pytest.raises(CacheError):
        seed(source, target, by_rename=True)
    assert not list(outside.iterdir())


@pytest.mark.parametrize("by_rename", [True, False])
def test_a_file_that_is_not_what_the_manifest_says_undoes_all_of_it(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, *, by_rename: bool
) -> None:
    _no_reflink(monkeypatch)
    source, target = pair
    os.utime(source / INSIDE / NAMES[1])  # same size: only its time tells that it was written to
    with pytest.raises(CacheError, match="is not as it was"):
        seed(source, target, by_rename=by_rename)
    assert scan(target) == ()
    assert os.listdir(target) == [".ttx-cache.json"]  # noqa: PTH208 - names
    assert (source / FIRST).stat().st_nlink == 1


def test_a_full_disk_undoes_all_of_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(CacheError, match="No space left"):
        seed(*pair, by_rename=False)
    assert os.listdir(pair[1]) == [".ttx-cache.json"]  # noqa: PTH208 - names


def test_an_interrupt_undoes_all_of_it(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)
    monkeypatch.setattr(transfer, "CHUNK", 4)
    os.truncate(pair[0] / FIRST, 4 << 20)
    finish(pair[0])

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transfer, "CHUNK", 1 << 20)
    with pytest.raises(KeyboardInterrupt):
        seed(*pair, by_rename=False, progress=stop)
    assert os.listdir(pair[1]) == [".ttx-cache.json"]  # noqa: PTH208 - names


def test_killed_while_copying_it_is_a_directory_that_is_being_built(pair: tuple[Path, Path]) -> None:
    source, target = pair
    pid = os.fork()
    if not pid:
        transfer._clone = lambda *_: False
        transfer.give = lambda *_: os.kill(os.getpid(), 9)
        try:
            seed(source, target, by_rename=False)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 9
    assert standing_of(target).standing == "building"
    assert all(not path.endswith("tensorbin") for path in files_of(target))  # no half a file under its own name
    assert standing_of(source).standing == "complete"
    assert KeyLock(source.parent, source.name).exclusive() is not None  # and nobody holds it any more


@pytest.mark.parametrize("what", ["no marker", "complete", "files", "broken and empty"])
def test_only_a_new_cache_is_seeded(pair: tuple[Path, Path], what: str) -> None:
    source, target = pair
    if what == "no marker":
        (target / ".ttx-cache.json").unlink()
    elif what == "broken and empty":
        finish(target, "broken")
    else:
        write_files(target, b"mine")
        if what == "complete":
            finish(target)
    before = files_of(target)
    with pytest.raises(CacheError, match="no empty cache"):
        seed(source, target, by_rename=True)
    assert files_of(target) == before


def test_nothing_is_taken_from_a_cache_that_is_built_or_not_complete(pair: tuple[Path, Path]) -> None:
    source, target = pair
    handle = KeyLock(source.parent, source.name).exclusive()
    assert handle is not None
    with pytest.raises(CacheRefusedError, match="being built"):
        seed(source, target, by_rename=True)
    os.close(handle)
    finish(source, "broken")
    with pytest.raises(CacheRefusedError, match="not complete"):
        seed(source, target, by_rename=True)


def test_the_source_is_locked_while_it_is_read(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)
    source, target = pair
    held: list[int | None] = []
    seed(
        source,
        target,
        by_rename=False,
        progress=lambda *_: held.append(KeyLock(source.parent, source.name).exclusive()),
    )
    assert held
    assert set(held) == {None}


# --- afterwards ----------------------------------------------------------------------------------------------------


@pytest.fixture
def linked(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a cache and one that shares its files."""
    _no_reflink(monkeypatch)
    seed(*pair, by_rename=True)
    return pair


def test_seeds_that_nobody_touched_are_well(linked: tuple[Path, Path]) -> None:
    seen = check_seeds(linked[1])
    assert (seen.source, seen.changed, seen.damaged, seen.replaced, seen.text) == (linked[0].name, (), (), (), "")


def test_a_cache_without_seeds_has_nothing_to_check(tmp_path: Path) -> None:
    assert check_seeds(complete(tmp_path, INPUTS)).source == ""


def test_a_file_that_was_renamed_over_harms_nobody(linked: tuple[Path, Path]) -> None:
    source, target = linked
    beside = target / "new"
    beside.write_bytes(b"other")
    beside.rename(target / FIRST)
    (target / INSIDE / NAMES[1]).unlink()
    seen = check_seeds(target)
    assert (seen.changed, seen.damaged) == ((), ())
    assert seen.replaced == (FIRST, f"{INSIDE}/{NAMES[1]}")
    assert b"weights" in files_of(source)[FIRST]


def _same_time(file: Path) -> None:
    file.write_bytes(b"W" * file.stat().st_size)
    os.utime(file, ns=(OLD, OLD))


def _longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"more")
    os.utime(file, ns=(OLD, OLD))


def _rewritten(file: Path) -> None:
    file.write_bytes(file.read_bytes())


def _written_then_renamed_over(file: Path) -> None:
    _rewritten(file)
    beside = file.with_name("beside")
    beside.write_bytes(b"other")
    beside.rename(file)


@pytest.mark.parametrize("harm", [_same_time, _longer, _rewritten, _written_then_renamed_over])
def test_a_write_in_place_breaks_every_cache_that_has_the_file(
    linked: tuple[Path, Path], tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    source, target = linked
    third = begin(tmp_path, with_env(MLP_BF4="1"))
    seed(source, third, by_rename=True)
    finish(third)
    stranger = complete(tmp_path, INPUTS | {"mesh": "P150"})
    harm(target / FIRST)
    seen = check_seeds(target)
    assert seen.changed == (FIRST,)
    assert seen.damaged == tuple(sorted({source.name, target.name, third.name}))
    assert stranger.name not in seen.damaged
    assert source.name in seen.text


def test_a_write_into_the_source_is_seen_from_the_new_cache(linked: tuple[Path, Path]) -> None:
    source, target = linked
    _rewritten(source / FIRST)
    assert check_seeds(target).changed == (FIRST,)


def test_when_the_source_was_removed_the_new_cache_stands_alone(linked: tuple[Path, Path]) -> None:
    source, target = linked
    source.rename(source.with_name("gone"))
    assert check_seeds(target).changed == ()
    _rewritten(target / FIRST)
    seen = check_seeds(target)
    assert (seen.changed, seen.damaged) == ((FIRST,), (target.name,))


def test_a_write_into_ones_own_copy_harms_nobody(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _no_reflink(monkeypatch)
    source, target = pair
    seed(source, target, by_rename=False)
    _longer(target / FIRST)
    seen = check_seeds(target)
    assert (seen.changed, seen.damaged, seen.replaced) == ((), (), (FIRST,))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 9}'])
def test_a_record_that_cannot_be_believed_is_no_clean_bill(linked: tuple[Path, Path], text: str) -> None:
    (linked[1] / SEEDS).write_text(text)
    with pytest.raises(CacheError):
        check_seeds(linked[1])


def test_a_record_that_leads_outside_is_refused(linked: tuple[Path, Path]) -> None:
    file = linked[1] / SEEDS
    file.write_text(file.read_text().replace(FIRST, "../../etc/passwd"))
    with pytest.raises(CacheError, match="no file that was put"):
        check_seeds(linked[1])


def test_seeds_do_not_count_as_files_of_a_cache(linked: tuple[Path, Path]) -> None:
    assert scan(linked[1]) == scan(linked[0])
    marker = read_marker(linked[1])
    assert marker is not None
    assert key_of(BF4) == marker.key
    write_marker(linked[1], marker)


# --- killed at any moment ---------------------------------------------------------------------------------------------


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
    _no_reflink(monkeypatch)
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
