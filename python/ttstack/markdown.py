"""The little of Markdown that generated reference pages need."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 120


def code(text: str) -> str:
    """Set a text as code; one that holds a backtick gets more of them around it."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table. A bar inside a cell is escaped, as it would end the cell even inside code."""
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def block(language: str, lines: Iterable[str]) -> list[str]:
    """Lines of a code block."""
    return [f"```{language}", *lines, "```"]


def paragraph(text: str, *, bullet: bool = False) -> list[str]:
    """Lines of a paragraph, or of an item of a list, broken at blanks only."""
    first, rest = ("- ", "  ") if bullet else ("", "")
    return fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False).splitlines()
