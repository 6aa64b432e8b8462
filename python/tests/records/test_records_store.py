from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import resource
import stat
import time
from typing import TYPE_CHECKING

import pytest
from records_kit import OWNER, close_line, open_line, start_python

from ttstack.records.errors import RecordsError
from ttstack.records.store import Store, encode

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.records.types import Owner


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "records.jsonl", lock_timeout_s=10)


def test_pairs_become_runs(store: Store) -> None:
    for line in (
        open_line("r-1"),
        open_line("r-2"),
        close_line("r-2"),
        close_line("r-1", outcome="failed", exit_code=1),
    ):
        store.append(line)
    log = store.read()
    assert [(run.id, run.outcome, run.quotable, run.seconds) for run in log.runs] == [
        ("r-1", "failed", False, 1.75),
        ("r-2", "ok", True, 1.75),
    ]
    assert log.faults == ()


def test_no_file_is_no_records(store: Store) -> None:
    assert store.read().runs == ()
    assert not store.path.parent.exists()


def test_the_file_may_be_read_by_all_and_written_by_its_owner(store: Store) -> None:
    before = os.umask(0)
    try:
        store.append(open_line())
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o644


def test_a_run_without_a_close_is_aborted_unless_its_owner_lives(store: Store) -> None:
    store.append(open_line())
    asked_about: list[Owner] = []

    def alive(owner: Owner) -> bool:
        asked_about.append(owner)
        return True

    assert store.read().runs[0].outcome == "aborted"
    assert store.read(alive).runs[0].outcome == "running"
    assert asked_about == [OWNER]
    assert store.read().runs[0].not_quotable == ("the run was never closed",)
    store.append(close_line())
    assert store.read(alive).runs[0].outcome == "ok"
    assert len(asked_about) == 1


def test_the_first_close_counts(store: Store) -> None:
    for line in (open_line(), close_line(), close_line(outcome="failed", exit_code=1), open_line(arm="other")):
        store.append(line)
    log = store.read()
    assert [(run.outcome, run.opened.arm) for run in log.runs] == [("ok", "sim")]
    assert [(fault.line, fault.kind, fault.run) for fault in log.faults] == [
        (3, "duplicate", "r-1"),
        (4, "duplicate", "r-1"),
    ]


def test_what_is_not_a_record_is_counted_and_named(store: Store) -> None:
    store.append(open_line())
    with store.path.open("ab") as file:
        for text in (
            b"[1]\n",
            b"{}\n",
            b'{"schema":2,"kind":"open","run":"r-9"}\n',
            b"\xff\xfe\n",
            b"\n",
            b"[" * 100_000 + b"\n",
            encode(close_line("r-8")),
            encode(close_line()).replace(b"0.25", b"NaN"),
            encode(close_line()).replace(b'"boot"', b'"\\uD800"'),
        ):
            file.write(text)
    store.append(close_line())
    log = store.read()
    assert [(fault.line, fault.kind) for fault in log.faults] == [
        (2, "invalid"),
        (3, "invalid"),
        (4, "newer"),
        (5, "torn"),
        (7, "invalid"),
        (8, "orphan"),
        (9, "torn"),
        (10, "invalid"),
    ]
    assert (log.invalid, log.torn, log.count("newer")) == (4, 2, 1)
    assert "schema 2" in log.faults[2].message
    assert [run.outcome for run in log.runs] == ["ok"]


def test_what_a_later_ttx_adds_does_not_hide_a_record(store: Store) -> None:
    store.append(open_line())
    with store.path.open("ab") as file:
        line = close_line()
        file.write(json.dumps({**line, "observed": {**line["observed"], "weather": "fine"}}).encode() + b"\n")
    run = store.read().runs[0]
    assert run.outcome == "ok"
    assert run.raw_close is not None
    assert run.raw_close["observed"]["weather"] == "fine"


def test_quotable_is_computed_again_on_reading(store: Store) -> None:
    store.append(open_line())
    with store.path.open("ab") as file:
        line = close_line(outcome="failed", exit_code=1)
        file.write(json.dumps({**line, "quotable": True, "quotable_reasons": []}).encode() + b"\n")
    assert store.read().runs[0].not_quotable == ("the outcome is failed",)


def test_a_verdict_against_stays_whatever_the_rule_is_today(store: Store) -> None:
    store.append(open_line())
    with store.path.open("ab") as file:
        line = {**close_line(), "quotable": False, "quotable_reasons": ["it rained"]}
        file.write(json.dumps(line).encode() + b"\n")
    assert store.read().runs[0].not_quotable == ("it rained",)


def test_a_line_torn_at_any_byte_is_skipped_counted_and_fenced_off(store: Store) -> None:
    store.append(open_line("r-0"))
    before = store.path.read_bytes()
    last = encode(close_line("r-0", text="naïve 日本語", measured=None, identity=None, observed=None, phases=()))
    fence = encode(open_line("r-2"))
    for size in range(len(last) + 1):
        store.path.write_bytes(before + last[:size])
        whole = size >= len(last) - 1  # only the newline is missing: nothing of the record is
        log = store.read()
        assert log.torn == (size > 0 and not whole), size
        assert (log.runs[0].closed is not None) == whole, size
        store.append(json.loads(fence))
        log = store.read()
        assert [run.id for run in log.runs] == ["r-0", "r-2"], size
        assert log.torn == (size > 0 and not whole), size


WRITER = """
import sys
from pathlib import Path
from records_kit import asked, open_line
from ttstack.records.store import Store
path, name, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = Store(Path(path))
print("begin", flush=True)
for number in range(count):
    store.append(open_line(f"{name}-{number}", asked=asked({"filler": name * size})))
    print(number, flush=True)
"""


@pytest.mark.parametrize("writers", [2, 8])
def test_writers_at_once_lose_and_mix_nothing(store: Store, writers: int) -> None:
    count, size = 12, 200_000
    running = [start_python(WRITER, str(store.path), chr(97 + n), str(count), str(size)) for n in range(writers)]
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    log = store.read()
    assert log.faults == ()
    assert {run.id for run in log.runs} == {f"{chr(97 + n)}-{i}" for n in range(writers) for i in range(count)}
    assert all(run.opened.asked.arm["filler"] == run.id[0] * size for run in log.runs)


def test_a_writer_killed_at_any_moment_costs_at_most_its_own_line(store: Store) -> None:
    dice = random.Random(20260131)  # noqa: S311 - moments, not secrets
    told: set[str] = set()
    for number in range(8):
        process = start_python(WRITER, str(store.path), f"w{number}", "100000", "500000")
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(dice.uniform(0.0, 0.08))
        process.kill()
        out, _ = process.communicate(timeout=60)
        told |= {f"w{number}-{line}" for line in out.decode().split()}
        store.append(open_line(f"after-{number}"))
    log = store.read()
    ids = {run.id for run in log.runs}
    assert told
    assert told <= ids
    assert {f"after-{number}" for number in range(8)} <= ids
    assert len(ids) <= len(told) + 16
    assert {fault.kind for fault in log.faults} <= {"torn"}


def test_a_file_that_may_not_grow_refuses_and_the_next_line_is_whole(store: Store) -> None:
    store.append(open_line("r-1"))
    size = store.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
    try:
        with pytest.raises(RecordsError, match=os.strerror(errno.EFBIG)):
            store.append(close_line("r-1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.path.stat().st_size == size + 100
    store.append(close_line("r-1"))
    log = store.read()
    assert (log.runs[0].outcome, log.torn) == ("ok", 1)


def test_a_file_that_is_not_ours_to_choose_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "link", tmp_path / "fifo", tmp_path):
        with pytest.raises(RecordsError):
            Store(path).append(open_line())
    with pytest.raises(RecordsError):
        Store(tmp_path / "link").read()
    assert target.read_bytes() == b"precious"


def test_a_lock_that_stays_held_is_an_error_for_a_writer_and_none_for_a_reader(tmp_path: Path) -> None:
    store = Store(tmp_path / "records.jsonl", lock_timeout_s=0.02)
    store.append(open_line())
    with store.path.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(RecordsError, match="stayed locked"):
            store.append(close_line())
        assert [run.id for run in store.read().runs] == ["r-1"]


def test_a_line_goes_to_the_file_that_has_the_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, the file is moved away (log rotation): the line must not go with it."""
    store.append(open_line("r-1"))
    moved = store.path.with_name("old")
    real = fcntl.flock

    def rotate(fd: int, how: int) -> None:
        real(fd, how)
        if not moved.exists():
            store.path.rename(moved)

    monkeypatch.setattr(fcntl, "flock", rotate)
    store.append(open_line("r-2"))
    monkeypatch.undo()
    assert [run.id for run in store.read().runs] == ["r-2"]
    assert [run.id for run in Store(moved).read().runs] == ["r-1"]


def test_each_line_is_one_write_and_synced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append(open_line())
    store.path.write_bytes(store.path.read_bytes() + b'{"torn')
    calls: list[str] = []
    write, sync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda fd, data: (calls.append("write"), write(fd, data))[1])
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("sync"), sync(fd))[1])
    store.append(close_line())
    assert calls == ["write", "sync"]


def test_a_line_written_in_two_parts_is_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:100]))
    store.append(open_line())
    assert store.read().faults == ()


def test_a_reader_stops_where_a_writer_is_busy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that comes after the reader measured the file is not read as torn."""
    store.append(open_line())
    real = fcntl.flock

    def write_after_unlock(fd: int, how: int) -> None:
        real(fd, how)
        if how == fcntl.LOCK_UN:
            with store.path.open("ab") as file:
                file.write(b'{"half')

    monkeypatch.setattr(fcntl, "flock", write_after_unlock)
    log = store.read()
    assert (len(log.runs), log.faults) == (1, ())


def test_ten_thousand_runs_are_read(store: Store) -> None:
    store.append(open_line())
    first, last = encode(open_line("RUN")), encode(close_line("RUN"))
    with store.path.open("wb") as file:
        for number in range(10_000):
            name = f"r-{number}".encode()
            file.write(first.replace(b"RUN", name) + last.replace(b"RUN", name))
    log = store.read()
    assert len(log.runs) == 10_000
    assert log.faults == ()


@pytest.mark.host
def test_a_full_disk_refuses_and_the_next_line_is_whole(tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415 - only here

    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        store = Store(small / "records.jsonl")
        store.append(open_line("r-1"))
        filler = small / "filler"
        filler.write_bytes(b"x" * 40_960)
        with pytest.raises(RecordsError, match=os.strerror(errno.ENOSPC)):
            store.append(open_line("r-2", verb="x" * 30_000))
        filler.unlink()
        store.append(close_line("r-1"))
        log = store.read()
        assert [run.outcome for run in log.runs] == ["ok"]
        assert log.torn == 1
    finally:
        subprocess.run(["umount", str(small)], check=True)
