"""``ttx records diff`` and ``query``: two runs beside each other, and questions in SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.cli.command import leaf, note, print_json, print_table
from ttstack.cli.record_files import add_records, file_of, find_run, read_log, tell
from ttstack.errors import Exit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from ttstack.cli.command import Context
    from ttstack.records.diff import CellEffect, Difference, RunDiff
    from ttstack.records.log import RunRecord

_DIFF = "  ttx records diff 20260131T2359 last\n  ttx records diff 20260131T2359 20260201T0815 --json\n"
_QUERY = """\
  ttx records query "SELECT run, arm, outcome FROM runs ORDER BY time"
  ttx records query "SELECT arm, cell, median FROM cells WHERE value = 'ttft_s' AND quotable" --csv
  ttx records query "FROM cells" --parquet cells.parquet
  ttx records query "DESCRIBE runs"
"""
_EFFECTS = ("CELL", "VALUE", "N", "MEDIAN A", "MEDIAN B", "EFFECT")


def add_diff(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``diff``."""
    parser = leaf(commands, "diff", "show what differs between two runs, and by how much", _DIFF, _diff)
    parser.add_argument("a", metavar="A", help="a run: its id or the start of it, or last")
    parser.add_argument("b", metavar="B", help="the other one")
    add_records(parser)


def add_query(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``query``."""
    parser = leaf(commands, "query", "ask in SQL: views opened, closed, runs, phases, cells", _QUERY, _query)
    parser.add_argument("sql", metavar="SQL", help="in DuckDB's dialect; it can read nothing else and change nothing")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV with a heading")
    form.add_argument("--parquet", type=Path, metavar="FILE", help="write a Parquet file")
    add_records(parser)


def _diff(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.records.diff import diff  # noqa: PLC0415 - late: what others need not wait for

    path = file_of(args)
    log = read_log(path, thorough=False)
    tell(path, log.faults)
    a, b = (find_run(name, path, log) for name in (args.a, args.b))
    found = diff(a, b)
    if args.json:
        print_json(_as_json(a, b, found))
        return Exit.DONE
    _print_diff(found)
    for name, run in (("A", a), ("B", b)):
        for reason in run.not_quotable:
            note(f"{name} ({run.id}) may not be quoted: {reason}")
    if found.cells:
        note("an effect between two boots is no verdict: `ttx ab` measures pairs")
    return Exit.DONE


def _print_diff(found: RunDiff) -> None:
    parts = {"asked": found.asked, "around": found.around, "observed": found.observed, "measured": found.measured}
    for title, differences in parts.items():
        if differences:
            print(title)
            print_table(("  FIELD", "A", "B"), [(f"  {d.path}", _text(d.a), _text(d.b)) for d in differences])
    if found.cells:
        print("cells")
        print_table([f"  {_EFFECTS[0]}", *_EFFECTS[1:]], [_effect_row(effect) for effect in found.cells])
    for name, only in (("A", found.only_a), ("B", found.only_b)):
        for cell in only:
            print(f"only {name} has the cell {cell}")
    if found == type(found)((), (), (), (), (), (), ()):
        note("nothing differs")


def _effect_row(effect: CellEffect) -> tuple[str, ...]:
    percent = "void" if effect.reasons else "" if effect.percent is None else f"{effect.percent:+.2f} %"
    counts = "/".join(map(str, dict.fromkeys(effect.n)))
    first, second = (f"{value:.6g}" for value in effect.median)
    return f"  {effect.cell}", effect.value, counts, first, second, percent


def _as_json(a: RunRecord, b: RunRecord, found: RunDiff) -> dict[str, Any]:
    def listed(differences: Iterable[Difference]) -> list[dict[str, Any]]:
        return [{"path": entry.path, "a": entry.a, "b": entry.b} for entry in differences]

    runs = [{"run": run.id, "quotable": run.quotable, "not_quotable": list(run.not_quotable)} for run in (a, b)]
    cells = [
        {
            "cell": effect.cell,
            "shape": effect.shape,
            "value": effect.value,
            "n": effect.n,
            "median": effect.median,
            "percent": effect.percent,
            "reasons": effect.reasons,
        }
        for effect in found.cells
    ]
    return {
        "a": runs[0],
        "b": runs[1],
        "asked": listed(found.asked),
        "around": listed(found.around),
        "observed": listed(found.observed),
        "measured": listed(found.measured),
        "cells": cells,
        "only_a": found.only_a,
        "only_b": found.only_b,
    }


def _query(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.records.query import export, gather, query  # noqa: PLC0415 - as above

    path = file_of(args)
    runs = gather(read_log(path, thorough=False))
    tell(path, runs.faults)
    if args.parquet is not None:
        count = export(runs, args.sql, args.parquet)
        note(f"{args.parquet}: {count} rows")
        if args.json:
            print_json({"file": str(args.parquet), "rows": count})
        return Exit.DONE
    answer = query(runs, args.sql)
    if args.json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    elif args.csv:
        import csv  # noqa: PLC0415 - for this alone
        import sys  # noqa: PLC0415 - as above

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows([["" if value is None else _text(value) for value in row] for row in answer.rows])
    elif answer.columns:
        print_table(answer.columns, [["" if value is None else _text(value) for value in row] for row in answer.rows])
    return Exit.DONE


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
