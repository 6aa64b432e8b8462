from __future__ import annotations

import fcntl
import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from records_kit import OWNER, close_line, open_line

from ttstack.records.errors import RecordsError
from ttstack.records.log import read_stream
from ttstack.records.seal import seal
from ttstack.records.store import Store, encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

    from ttstack.records.log import Log
    from ttstack.records.types import Opened


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
    asked_about: list[Opened] = []

    def alive(opened: Opened) -> bool:
        asked_about.append(opened)
        return True

    assert store.read().runs[0].outcome == "aborted"
    assert store.read(alive).runs[0].outcome == "running"
    assert [opened.owner for opened in asked_about] == [OWNER]
    assert store.read().runs[0].not_quotable == ("the run was never closed",)
    store.append(close_line())
    assert store.read(alive).runs[0].outcome == "ok"
    assert len(asked_about) == 1


def test_a_run_is_closed_once(store: Store) -> None:
    store.append(open_line())
    other, torn = encode(close_line(run="another")), encode(close_line())[:-40]
    with store.path.open("ab") as file:
        file.write(other + torn + b"\n")
        file.write(encode(close_line()).replace(b'"outcome":"ok"', b'"outcome":"fine"'))
    assert store.close(close_line())
    assert not store.close(close_line(outcome="failed", exit_code=1))
    log = store.read()
    assert log.runs[0].outcome == "ok"
    assert log.count("duplicate") == 0
    assert (log.count("torn"), log.count("invalid")) == (1, 1)


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
    assert (log.count("invalid"), log.count("torn"), log.count("newer")) == (4, 2, 1)
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
        assert log.count("torn") == (size > 0 and not whole), size
        assert (log.runs[0].closed is not None) == whole, size
        store.append(json.loads(fence))
        log = store.read()
        assert [run.id for run in log.runs] == ["r-0", "r-2"], size
        assert log.count("torn") == (size > 0 and not whole), size


def test_a_file_that_is_not_ours_to_choose_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "link", tmp_path / "fifo", tmp_path):
        with pytest.raises(RecordsError):
            Store(path).append(open_line())
    with pytest.raises(RecordsError, match="Too many levels of symbolic links"):
        Store(tmp_path / "link").read()
    for act in (Store(tmp_path / "fifo").read, lambda: Store(tmp_path / "fifo").append(open_line())):
        with pytest.raises(RecordsError, match="not a regular file"):
            act()
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
    """A line that is begun after the reader looked how long the file is, is not read as torn."""
    store.append(open_line())

    def read_late(stream: BinaryIO, size: int, alive: Callable[[Opened], bool], **how: bool) -> Log:
        with store.path.open("ab") as file:
            file.write(b'{"half')
        return read_stream(stream, size, alive, **how)

    monkeypatch.setattr("ttstack.records.store.read_stream", read_late)
    log = store.read()
    assert (len(log.runs), log.faults) == (1, ())
    monkeypatch.undo()
    assert store.read().count("torn") == 1


def test_a_reader_waits_for_the_line_in_the_making(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append(open_line())
    calls: list[int] = []
    real = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: (calls.append(how), real(fd, how))[1])
    store.read()
    assert calls == [fcntl.LOCK_SH | fcntl.LOCK_NB, fcntl.LOCK_UN]


def test_ten_thousand_runs_are_read(store: Store) -> None:
    store.append(open_line())
    bodies = [encode(line).rpartition(b',"sum"')[0] + b"}" for line in (open_line("RUN"), close_line("RUN"))]
    with store.path.open("wb") as file:
        for number in range(10_000):
            for body in bodies:
                file.write(seal(body.replace(b"RUN", b"r-%d" % number)))
    log = store.read(thorough=False)
    assert len(log.runs) == 10_000
    assert log.faults == ()
