"""SQL over records, by DuckDB in memory: it reads nothing but the lines that it is given, and no network."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ttstack.host.files import FILE_MODE
from ttstack.records.build import timestamp
from ttstack.records.errors import RecordsError
from ttstack.records.log import RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

    from ttstack.records.line import Fault
    from ttstack.records.log import Log
    from ttstack.records.types import Json

VIEWS = ("opened", "closed", "runs", "phases", "cells")


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query, with the names of their columns; all values are such as JSON can hold."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Json, ...], ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Whole runs: their lines, what a reader says of each, and the lines that turned out to be none."""

    lines: tuple[str, ...]
    verdicts: tuple[tuple[str, bool, bool], ...]  # run, whether it lives, whether its numbers may be quoted
    faults: tuple[Fault, ...]


def gather(log: Log) -> Gathered:
    """Look at each run closely; it need not be a log that was read thoroughly."""
    lines: list[str] = []
    verdicts: list[tuple[str, bool, bool]] = []
    faults = list(log.faults)
    for known in log.runs:
        # A copy, so that what is parsed of thousands of runs does not stay in memory.
        halves = [replace(half) for half in (known.open_line, known.close_line) if half]
        run = RunRecord(halves[0], halves[1] if len(halves) > 1 else None, known.alive)
        fault = run.fault()
        if fault is not None:
            faults.append(fault)
            continue
        lines.extend(half.raw.decode("utf-8") for half in halves)
        verdicts.append((run.id, run.alive, run.quotable))
    return Gathered(tuple(lines), tuple(verdicts), tuple(sorted(faults, key=lambda fault: fault.line)))


def query(runs: Gathered, sql: str) -> Answer:
    """Answer a query over runs. Raises RecordsError for what DuckDB does not take, or when there is none."""
    with _connected(runs, None) as connection:
        done = _run(connection, sql)
        columns = done.description or ()
        kinds = [str(column[1]) for column in columns]
        rows = (tuple(map(_plain, row, kinds)) for row in done.fetchall())
        return Answer(tuple(column[0] for column in columns), tuple(rows))


def export(runs: Gathered, sql: str, file: Path) -> int:
    """Write the answer to a query into a Parquet file, whole or not at all; return the number of rows.

    Raises RecordsError.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.absolute().parent)
    except OSError as error:
        raise RecordsError(f"cannot write {file}: {error.strerror}", reason="query") from error
    os.close(handle)
    beside = Path(name)
    try:
        with _connected(runs, name) as connection:
            quoted = name.replace("'", "''")
            words = f"COPY ({sql.strip().rstrip(';')}\n) TO '{quoted}' (FORMAT parquet, USE_TMP_FILE false)"
            counted = _run(connection, words).fetchone()
        beside.chmod(FILE_MODE)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
    return int(counted[0]) if counted else 0


@contextmanager
def _connected(runs: Gathered, writable: str | None) -> Iterator[DuckDBPyConnection]:
    try:
        import duckdb  # noqa: PLC0415 - late: it takes longer to import than all the rest
    except ImportError as error:
        raise RecordsError(
            f"DuckDB cannot be imported: {error}",
            hint="`ttx records query` alone needs it; install the Python package duckdb",
            reason="no_duckdb",
        ) from error
    # Nothing is loaded from elsewhere, and no variable of this program is taken for a table.
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    with duckdb.connect(":memory:", config=config) as connection:
        _fill(connection, runs)
        if writable is not None:
            connection.execute("SET allowed_paths = $1", [[writable]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _fill(connection: DuckDBPyConnection, runs: Gathered) -> None:
    connection.execute("CREATE TABLE lines AS SELECT unnest($1::VARCHAR[])::JSON AS line", [list(runs.lines)])
    connection.execute(
        "CREATE TABLE verdicts AS"
        " SELECT unnest($1::VARCHAR[]) AS run, unnest($2::BOOLEAN[]) AS alive, unnest($3::BOOLEAN[]) AS quotable",
        [[verdict[at] for verdict in runs.verdicts] for at in range(3)],
    )
    connection.execute(files("ttstack.records").joinpath("views.sql").read_text(encoding="utf-8"))


def _run(connection: DuckDBPyConnection, sql: str) -> DuckDBPyConnection:
    import duckdb  # noqa: PLC0415 - as above

    hint = f"views: {', '.join(VIEWS)}; `DESCRIBE runs` tells the columns of one"
    try:
        done: DuckDBPyConnection | None = connection.execute(sql)
    except duckdb.Error as error:
        raise RecordsError(str(error), hint=hint, reason="query") from error
    if done is None:  # there is nothing but spaces and remarks
        raise RecordsError("the query asks nothing", hint=hint, reason="query")
    return done


def _plain(value: Any, kind: str = "") -> Json:  # noqa: ANN401 - whatever DuckDB has
    """Turn a value into one that JSON can hold: times are UTC in ISO 8601, what is not finite is null."""
    if kind == "JSON" and isinstance(value, str):
        return cast("Json", json.loads(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return _scalar(value)


def _scalar(value: object) -> Json:
    if isinstance(value, float | Decimal):
        return float(value) if isfinite(value) else None
    if isinstance(value, datetime):
        return timestamp(value.replace(tzinfo=UTC))
    return value if value is None or isinstance(value, str | int) else str(value)
