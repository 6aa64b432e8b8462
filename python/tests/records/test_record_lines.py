"""Reading lines: quickly and thoroughly, whole and not."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records_kit import close_line, forged, open_line

from ttstack.records import line as line_module
from ttstack.records.errors import RecordsError
from ttstack.records.line import Fault, Line, read_line
from ttstack.records.log import Log, nobody, read_stream
from ttstack.records.seal import holds, seal
from ttstack.records.store import Store, encode

if TYPE_CHECKING:
    from pathlib import Path

RUNS = [f"r-{number}" for number in range(4)]
LINES = [encode(make(run)) for run in RUNS for make in (open_line, close_line)]


def _read(data: bytes, *, thorough: bool = True) -> Log:
    return read_stream(io.BytesIO(data), len(data), nobody, thorough=thorough)


def _said(log: Log) -> tuple[list[Any], list[Any]]:
    runs = [(run.id, run.time, run.arm, run.outcome, run.quotable, run.raw_open, run.raw_close) for run in log.runs]
    return runs, [(fault.line, fault.kind, fault.run) for fault in log.faults]


@given(st.binary(max_size=80))
@settings(deadline=None)
def test_a_sum_holds_for_what_it_was_made_of_and_for_nothing_else(body: bytes) -> None:
    line = seal(body + b"}")
    assert holds(line)
    assert holds(line[:-1])
    assert not holds(body)
    for at in range(len(line) - 1):
        assert not holds(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :])


def test_a_line_that_holds_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "decode", lambda *_: pytest.fail("parsed"))
    first, last = read_line(1, LINES[0]), read_line(2, LINES[1])
    assert isinstance(first, Line)
    assert isinstance(last, Line)
    assert (first.kind, first.run, first.what, first.changed) == ("open", "r-0", "sim", False)
    assert (last.kind, last.run, last.what) == ("close", "r-0", "ok")


@pytest.mark.parametrize("arm", ["sim", "naïve", 'with "quotes"', "back\\slash", "a,b:{}[]", "", "日本"])
def test_a_glance_tells_what_a_parser_tells(arm: str) -> None:
    raw = encode(open_line("r-9", arm=arm))
    line = read_line(1, raw)
    assert isinstance(line, Line)
    table = json.loads(raw)
    assert (line.run, line.time, line.what, line.id) == ("r-9", table["time"], arm, table["id"])


def test_a_changed_line_is_read_and_not_quotable() -> None:
    data = b"".join(LINES[:2])
    assert _read(data).runs[0].quotable
    changed = data.replace(b'"cpu_count":2', b'"cpu_count":3')
    for thorough in (True, False):
        run = _read(changed, thorough=thorough).runs[0]
        assert run.opened.host.cpu_count == 3
        assert run.not_quotable == ("a line was changed after it was written",)
    respelled = b"".join(json.dumps(json.loads(line)).encode() + b"\n" for line in LINES[:2])
    assert not _read(respelled).runs[0].quotable


def test_a_line_of_before_there_were_sums_is_no_changed_one() -> None:
    old = b"".join(
        json.dumps({name: value for name, value in json.loads(line).items() if name != "sum"}).encode() + b"\n"
        for line in LINES[:2]
    )
    for thorough in (True, False):
        assert _read(old, thorough=thorough).runs[0].quotable


def test_a_sum_over_something_that_is_no_record_is_found_by_who_looks_closely() -> None:
    raw = forged("r-0")
    assert holds(raw)
    assert [fault.kind for fault in _read(raw + LINES[1]).faults] == ["invalid", "orphan"]
    quick = _read(raw + LINES[1], thorough=False)
    assert quick.faults == ()
    fault = quick.runs[0].fault()
    assert fault is not None
    assert fault.kind == "invalid"
    with pytest.raises(RecordsError, match="line 1 of the records is invalid"):
        _ = quick.runs[0].raw_open
    alone = _read(raw, thorough=False)  # one that nobody closed is looked at in any case: does its owner live?
    assert ([fault.kind for fault in alone.faults], alone.runs) == (["invalid"], ())


def test_numbers_that_nothing_can_hold_and_halves_of_characters_are_refused() -> None:
    line = json.loads(LINES[1])
    for old, new in (('"seconds": 1.5', '"seconds": 1e999'), ('"text": ""', '"text": "\\ud800"')):
        raw = json.dumps(line).replace(old, new).encode()
        assert new.encode() in raw
        found = read_line(1, raw)
        assert isinstance(found, Fault), new
        assert found.kind == "invalid"
    sealed = seal(raw.rpartition(b', "sum"')[0] + b"}")
    assert isinstance(read_line(1, sealed), Fault)


PIECES = st.one_of(
    st.sampled_from(LINES),
    st.sampled_from(LINES).flatmap(lambda line: st.integers(0, len(line)).map(lambda at: line[:at] + b"\n")),
    st.sampled_from(LINES).flatmap(lambda line: st.integers(0, len(line)).map(lambda at: line[at:])),
    st.sampled_from(
        [b"\n", b"  \n", b"null\n", b"[]\n", b"{}\n", b'{"schema":2,"run":"x"}\n', b"\xff\xfe\n", b"[" * 3000]
    ),
    st.binary(max_size=40),
    st.sampled_from(LINES).map(lambda line: json.dumps({**json.loads(line), "weather": "fine"}).encode() + b"\n"),
)


@given(st.lists(PIECES, max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_lies_in_a_file_a_quick_reader_says_what_a_thorough_one_says(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    thorough, quick = _read(data), _read(data, thorough=False)
    assert _said(thorough) == _said(quick)
    whole = {raw for raw in data.split(b"\n") if raw + b"\n" in LINES}
    named = {(json.loads(raw)["run"], json.loads(raw)["kind"]) for raw in whole}
    seen = {(run.id, "open") for run in thorough.runs} | {(run.id, "close") for run in thorough.runs if run.closed}
    assert {half for half in named if (half[0], "open") in named} <= seen  # no whole line is lost


@given(st.permutations(LINES), st.data())
@settings(max_examples=40, deadline=None)
def test_interleaved_lines_cost_themselves_alone(lines: list[bytes], data: st.DataObject) -> None:
    """Two writers without a lock: one line lands in the middle of another."""
    first, second, *rest = lines
    at = data.draw(st.integers(1, len(first) - 2))
    log = _read(first[:at] + second + first[at:] + b"".join(rest))
    lost = {(json.loads(line)["run"], json.loads(line)["kind"]) for line in (first, second)}
    for run in RUNS:
        if (run, "open") not in lost:
            found = next(entry for entry in log.runs if entry.id == run)
            assert (found.closed is None) == ((run, "close") in lost)
    assert not {run.id for run in log.runs} - set(RUNS)


def test_runs_are_listed_by_the_time_of_their_opening() -> None:
    early, late = (json.loads(line) for line in (LINES[0], LINES[2]))
    early["time"], late["time"] = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
    log = _read(encode(late) + encode(early))
    assert [run.id for run in log.runs] == ["r-0", "r-1"]


def test_lines_are_read_again_from_the_file_that_was_read(tmp_path: Path) -> None:
    """A quick reader keeps no line in memory; what is moved into the file's place meanwhile is another file."""
    store = Store(tmp_path / "records.jsonl")
    for run in RUNS:
        store.append(open_line(run))
        store.append(close_line(run))
    log = store.read(thorough=False)
    raws = [run.open_line.raw for run in log.runs]
    assert not isinstance(log.runs[0].open_line.origin, bytes)
    store.path.rename(tmp_path / "old")
    store.path.write_bytes(b"x" * 100_000)
    assert [run.open_line.raw for run in log.runs] == raws
    (tmp_path / "old").write_bytes(b"")
    fault = log.runs[0].fault()
    assert fault is not None
    assert fault.kind == "torn"


def test_a_log_that_somebody_holds_locks_nobody_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "records.jsonl", lock_timeout_s=0.1)
    held = []
    store.append(open_line("r-1"))
    store.append(open_line("r-2"), unless=lambda log: bool(held.append(log)))
    store.extend(lambda stream, size: [bytes(held.append(read_stream(stream, size, nobody, thorough=False)) or b"")])
    held.append(store.read(thorough=False))
    store.append(close_line("r-1"))
    assert len(store.read().runs) == 2
