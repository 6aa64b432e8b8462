"""Suites on a command line: which one and its settings, and its cells as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from ttstack.cli.command import print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from ttstack.records.types import Cell, Json, Measured

_COLUMNS = {
    "TTFT s": "ttft_s",
    "PP tokens/s": "pp_tokens_per_s",
    "TG ms/token": "tg_ms_per_token",
    "tokens/s": "tokens_per_s",
    "goodput": "goodput_share",
}


def add_suite(parser: argparse.ArgumentParser) -> None:
    """Add which suite, and how it is set."""
    parser.add_argument("--suite", default="smoke", metavar="SUITE", help="what to measure (smoke)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the suite; as often as wanted"
    )
    parser.add_argument(
        "--settings", type=Path, metavar="FILE", help="a TOML file with settings, a table for each suite; --set wins"
    )


def settings_of(args: argparse.Namespace) -> Mapping[str, Json]:
    """Read what ``add_suite`` added: all settings of the suite. Raises UsageError."""
    from ttstack.bench.suites.registry import find_suite  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.records.build import jsonable  # noqa: PLC0415

    settings = find_suite(args.suite).read(words=args.set, file=args.settings)
    return cast("Mapping[str, Json]", jsonable(settings))


def print_cells(measured: Measured) -> None:
    """Print a row for each cell (medians), and what does not hold."""
    columns = {title: name for title, name in _COLUMNS.items() if any(name in cell.stats for cell in measured.cells)}
    if measured.cells:
        print_table(["CELL", "N", *columns, "STATE"], [_row(cell, columns.values()) for cell in measured.cells])
    for check in measured.checks:
        if not check.ok:
            print(f"{check.name}: {check.detail}")


def _row(cell: Cell, columns: Iterable[str]) -> list[str]:
    n = max((stat.n for stat in cell.stats.values()), default=0)
    medians = [f"{cell.stats[name].median:.4g}" if name in cell.stats else "" for name in columns]
    state = "; ".join(cell.reasons) or "; ".join(cell.notes)
    return [cell.name, str(n), *medians, f"void: {state}" if cell.reasons else state or "valid"]
