"""The screen of ``ttx top``: lines of styled text that fit the terminal, as tables where they do and flowing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from ttstack.cli.human import size
from ttstack.cli.top_cells import (
    BAD,
    CARD_COLUMNS,
    DIM,
    RUN_COLUMNS,
    Cell,
    card_cells,
    run_cells,
    run_notes,
)
from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ttstack.cli.top_cells import Column
    from ttstack.run.top.types import Overview

    Row: TypeAlias = tuple[Sequence[Cell], Sequence[Cell]]
    """The cells of a thing, and what is said below them."""

_GAP = "  "
_LEAST_LAST = 24  # cells of a last column that may be cut
_HEAD = "bold underline"


def screen(seen: Overview, width: int, height: int, *, every_s: float, encoding: str = "utf-8") -> list[Text]:
    """Lay out an overview: at most ``height`` lines, none wider than ``width`` cells, of what the encoding has."""
    plain = encoding.lower().replace("-", "") != "utf8"
    lines = [_head(seen, width, every_s)]
    lines += [Text(f"{text}", BAD) for text in map(printable, seen.troubles)]
    cards: list[Row] = [(card_cells(card, "C" if plain else "°C"), []) for card in seen.cards]
    runs: list[Row] = [(run_cells(run), run_notes(run)) for run in seen.runs]
    lines += [Text(), *(_block(CARD_COLUMNS, cards, width, last=True) if cards else [Text("no cards", DIM)])]
    lines += [Text(), *(_block(RUN_COLUMNS, runs, width) if runs else [Text("nothing runs here", DIM)])]
    more = len(lines) - height
    if more > 0:
        lines = [*lines[: max(0, height - 1)], Text(f"and {more + 1} more lines: ttx top --once", DIM)][-height:]
    for line in lines:
        if plain:
            line.plain = line.plain.encode(encoding, "backslashreplace").decode(encoding)
        line.truncate(width, overflow="crop" if plain else "ellipsis")
        line.no_wrap = True
    return lines


def _head(seen: Overview, width: int, every_s: float) -> Text:
    parts = [time.strftime("%H:%M:%S", time.localtime(seen.at)), f"every {every_s:g} s"]
    line = Text.assemble(("ttx top", "bold"), _GAP, _GAP.join(parts))
    if seen.memory_available_bytes is not None and seen.memory_bytes is not None:
        memory = f"{size(seen.memory_available_bytes)} free of {size(seen.memory_bytes)}"
        titled = f"{_GAP}memory {memory}"
        line.append(titled if cell_len(line.plain) + len(titled) <= width else f"{_GAP}{memory}")
    way_out = "q quits"
    room = width - cell_len(line.plain) - len(way_out)
    return line.append(" " * room + way_out, DIM) if room >= len(_GAP) else line


def _block(columns: Sequence[Column], rows: Sequence[Row], width: int, *, last: bool = False) -> list[Text]:
    """Lay out rows as a table when the terminal is wide enough for it. ``last``: its last column may be cut."""
    widths = [
        max(column.least, len(column.title), *(cell_len(cells[at].text) for cells, _ in rows))
        for at, column in enumerate(columns)
    ]
    needed = sum(widths) + len(_GAP) * (len(widths) - 1) - (max(0, widths[-1] - _LEAST_LAST) if last else 0)
    if needed > width:
        return [line for row in rows for line in _flow(columns, row, width)]
    lines = [_line(columns, [Cell(column.title, _HEAD) for column in columns], widths)]
    for cells, notes in rows:
        lines.append(_line(columns, [cell if cell.text else Cell("-", DIM) for cell in cells], widths))
        lines += _below(notes)
    return lines


def _line(columns: Sequence[Column], cells: Sequence[Cell], widths: Sequence[int]) -> Text:
    line = Text()
    for at, (column, cell, wide) in enumerate(zip(columns, cells, widths, strict=True)):
        pad = " " * (wide - cell_len(cell.text))
        line.append(_GAP if at else "")
        if column.right:
            line.append(pad).append(cell.text, cell.style)
        else:
            line.append(cell.text, cell.style).append(pad)
    line.rstrip()
    return line


def _flow(columns: Sequence[Column], row: Row, width: int) -> list[Text]:
    """Put one cell after the other, and those for which there is no room on further lines."""
    cells, notes = row
    lines = [Text()]
    for column, cell in zip(columns, cells, strict=True):
        if not cell.text:
            continue
        word = f"{column.before}{cell.text}{column.after}"
        if lines[-1].plain.strip() and cell_len(lines[-1].plain) + len(_GAP) + cell_len(word) > width:
            lines.append(Text())
        if lines[-1].plain.strip() or len(lines) > 1:
            lines[-1].append(_GAP)
        lines[-1].append(word, cell.style)
    return [*lines, *_below(notes)]


def _below(notes: Sequence[Cell]) -> list[Text]:
    return [Text.assemble(_GAP, (note.text, note.style)) for note in notes]
