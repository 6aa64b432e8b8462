"""SQL over records, by DuckDB in memory: it reads nothing but the lines that it is given, and no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from ttstack.records.build import timestamp
from ttstack.records.errors import RecordsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from ttstack.records.log import Log
    from ttstack.records.types import Json

VIEWS = ("opened", "closed", "runs", "phases", "cells")


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query, with the names of their columns; all values are such as JSON can hold."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Json, ...], ...]


def query(log: Log, sql: str) -> Answer:
    """Answer a query over the runs of a log. Raises RecordsError for what DuckDB does not take, or lacks."""
    with _asked(log, sql, None) as done:
        columns = done.description or ()
        kinds = [str(column[1]) for column in columns]
        rows = (tuple(map(_plain, row, kinds)) for row in done.fetchall())
        return Answer(tuple(column[0] for column in columns), tuple(rows))


def export(log: Log, sql: str, file: Path) -> int:
    """Write the answer to a query into a Parquet file; return the number of rows. Raises RecordsError."""
    with _asked(log, "", file) as connection:
        escaped = str(file).replace("'", "''")
        done = _run(connection, f"COPY ({sql.strip().rstrip(';')}\n) TO '{escaped}' (FORMAT parquet)")
        counted = done.fetchone()
        return int(counted[0]) if counted else 0


@contextmanager
def _asked(log: Log, sql: str, writable: Path | None) -> Iterator[DuckDBPyConnection]:
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
        _fill(connection, log)
        if writable is not None:
            connection.execute("SET allowed_paths = $1", [[str(writable)]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield _run(connection, sql) if sql else connection


def _fill(connection: DuckDBPyConnection, log: Log) -> None:
    lines = [half.raw.decode("utf-8") for run in log.runs for half in (run.open_line, run.close_line) if half]
    # What a reader says of each run, which may be stricter than what its lines say.
    verdicts = [[run.id for run in log.runs], [run.alive for run in log.runs], [run.quotable for run in log.runs]]
    connection.execute("CREATE TABLE lines AS SELECT unnest($1::VARCHAR[])::JSON AS line", [lines])
    connection.execute(
        "CREATE TABLE verdicts AS"
        " SELECT unnest($1::VARCHAR[]) AS run, unnest($2::BOOLEAN[]) AS alive, unnest($3::BOOLEAN[]) AS quotable",
        verdicts,
    )
    connection.execute(files("ttstack.records").joinpath("views.sql").read_text(encoding="utf-8"))


def _run(connection: DuckDBPyConnection, sql: str) -> DuckDBPyConnection:
    import duckdb  # noqa: PLC0415 - as above

    try:
        return connection.execute(sql)
    except duckdb.Error as error:
        raise RecordsError(str(error), hint=f"views: {', '.join(VIEWS)}; `DESCRIBE runs`", reason="query") from error


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
