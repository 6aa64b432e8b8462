"""SQL over records."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
from records_kit import AB, CELL, MEASURED, close_line, forged, open_line

from ttstack.records.errors import RecordsError
from ttstack.records.log import read_stream
from ttstack.records.query import VIEWS, Gathered, export, gather, query
from ttstack.records.store import encode

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.records.types import Opened


def _gather(data: bytes, alive: str = "") -> Gathered:
    def lives(opened: Opened) -> bool:
        return opened.run == alive

    return gather(read_stream(io.BytesIO(data), len(data), lives, thorough=False))


@pytest.fixture(scope="module")
def runs() -> Gathered:
    bare = close_line("d", outcome="refused", exit_code=3, reason="busy", text="it's busy", phases=(), observed=None)
    lines = (
        open_line("a", ab=AB),
        close_line("a"),
        open_line("b", arm="o'ne"),
        close_line("b", measured=None, identity=None),
        open_line("c"),
        open_line("d"),
        bare,
        open_line("e"),
    )
    return _gather(b"".join(map(encode, lines)) + b'{"torn\n' + b"\n", alive="e")


def test_runs_tell_what_a_reader_tells(runs: Gathered) -> None:
    found = query(runs, "SELECT run, arm, outcome, quotable, seconds, ab_pair FROM runs ORDER BY run")
    assert found.columns == ("run", "arm", "outcome", "quotable", "seconds", "ab_pair")
    assert found.rows == (
        ("a", "sim", "ok", True, 1.75, 0),
        ("b", "o'ne", "ok", False, 1.75, None),
        ("c", "sim", "aborted", False, None, None),
        ("d", "sim", "refused", False, 0.0, None),
        ("e", "sim", "running", False, None, None),
    )
    assert [fault.kind for fault in runs.faults] == ["torn"]


def test_every_view_answers_with_columns_of_its_own(runs: Gathered) -> None:
    counts = {view: len(query(runs, f"FROM {view}").rows) for view in VIEWS}
    assert counts == {"opened": 5, "closed": 3, "runs": 5, "phases": 4, "cells": 2}
    for view in VIEWS:
        assert len(set(query(runs, f"FROM {view}").columns)) > 3
    boot = query(runs, "SELECT start, seconds FROM phases WHERE run = 'a' AND phase = 'boot'")
    assert boot.rows == (("2026-01-31T23:59:59.123Z", 1.5),)


def test_cells_hold_raw_values_and_what_they_come_to(runs: Gathered) -> None:
    found = query(
        runs, "SELECT cell, shape, valid, value, n, median, p90, samples, quotable FROM cells WHERE run = 'a'"
    )
    assert found.rows == (("prefill 1024", CELL.shape, True, "ttft_s", 2, 0.375, None, [0.25, 0.5], True),)
    assert query(runs, "SELECT avg(x) FROM (SELECT unnest(samples) AS x FROM cells)").rows == ((0.375,),)


def test_all_of_a_line_is_at_hand(runs: Gathered) -> None:
    found = query(runs, "SELECT line->>'$.host.hostname', line->'$.asked.cache' FROM opened WHERE run = 'a'")
    assert found.rows == (("cardhost", {"key": "0123456789abcdef", "inputs": {"version": 1}}),)


def test_no_records_are_no_rows() -> None:
    nothing = _gather(b"")
    assert [query(nothing, f"FROM {view}").rows for view in VIEWS] == [()] * len(VIEWS)
    old = encode(close_line("a", measured=MEASURED)).partition(b',"cells"')[0]
    assert query(_gather(old), "FROM cells").rows == ()


def test_a_line_that_is_no_record_under_its_sum_is_left_out_and_told() -> None:
    found = _gather(encode(open_line("a")) + forged("b") + encode(close_line("b")))
    assert [(fault.line, fault.kind) for fault in found.faults] == [(2, "invalid")]
    assert query(found, "SELECT run FROM runs").rows == (("a",),)


def test_no_variable_of_the_program_is_a_table(runs: Gathered) -> None:
    assert query(runs, "SELECT current_setting('python_enable_replacements')").rows == ((False,),)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('/etc/passwd')",
        "FROM read_text('/etc/hostname')",
        "FROM read_parquet('http://127.0.0.1:9/x')",
        "FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '{tmp}/x.csv'",
        "EXPORT DATABASE '{tmp}/x'",
        "ATTACH '{tmp}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET autoinstall_known_extensions = true",
        "SET lock_configuration = false",
        "FROM sys",
        "FROM runs_of_python",
        "SELEC 1",
        "",
        " ; -- nothing",
    ],
)
def test_a_query_reaches_nothing_but_the_records(runs: Gathered, sql: str, tmp_path: Path) -> None:
    runs_of_python = [1]
    with pytest.raises(RecordsError) as caught:
        query(runs, sql.format(tmp=tmp_path))
    assert caught.value.reason == "query"
    assert "views: opened, closed" in caught.value.hint
    assert (list(tmp_path.iterdir()), runs_of_python) == ([], [1])


def test_a_parquet_file_is_whole_or_not_there(runs: Gathered, tmp_path: Path) -> None:
    import duckdb  # noqa: PLC0415 - for this alone

    file = tmp_path / "it's.parquet"
    file.write_bytes(b"old")
    with pytest.raises(RecordsError):
        export(runs, "SELECT no_such_column FROM runs", file)
    assert file.read_bytes() == b"old"
    assert export(runs, "SELECT run, samples FROM cells ORDER BY run -- a remark;", file) == 2
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    rows = duckdb.sql(f"FROM read_parquet('{str(file).replace(chr(39), chr(39) * 2)}')").fetchall()
    assert rows == [("a", [0.25, 0.5]), ("d", [0.25, 0.5])]
    with pytest.raises(RecordsError, match="file system operations are disabled"):
        export(runs, f"SELECT 1) TO '{tmp_path}/other.csv'; COPY (SELECT 1", file)
    with pytest.raises(RecordsError, match="cannot write"):
        export(runs, "FROM runs", tmp_path / "none" / "x.parquet")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_values_of_every_kind_are_such_as_json_can_hold(runs: Gathered) -> None:
    found = query(
        runs,
        "SELECT 1::HUGEINT, 1.5::DECIMAL(4, 2), 'nan'::DOUBLE, TIMESTAMP '2026-01-31 00:00:00', DATE '2026-01-31',"
        " {'a': [1, NULL]}, MAP {'k': 2.5}, NULL, true, '[1]'::JSON, 'x'::BLOB, INTERVAL 1 DAY",
    )
    assert found.rows[0][:11] == (
        *(1, 1.5, None, "2026-01-31T00:00:00.000Z", "2026-01-31", {"a": [1, None]}, {"k": 2.5}, None, True, [1]),
        "b'x'",
    )


def test_without_duckdb_the_way_out_is_told(runs: Gathered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(RecordsError, match="DuckDB cannot be imported") as caught:
        query(runs, "FROM runs")
    assert caught.value.reason == "no_duckdb"
