"""The Markdown of a report. ``PYTHONPATH=.:tests/records python tests/records/test_report_markdown.py`` renews it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report_kit import NASTY, history, report_of, run_lines
from test_report_page import nasty_lines

from ttstack.records.report.markdown import MOST, code, markdown

GOLDEN = Path(__file__).parent / "golden" / "report.md"


def golden() -> str:
    return markdown(report_of(history()))


def cells(row: str) -> list[str]:
    """Split a row as GitHub does: at bars that no backslash escapes."""
    return re.split(r"(?<!\\)\|", row.strip("|"))


def test_the_page_is_as_it_was() -> None:
    assert GOLDEN.read_text(encoding="utf-8") == golden(), f"read the difference, then refresh: {__doc__}"


def test_every_row_has_the_cells_of_its_table() -> None:
    for text in (golden(), markdown(report_of(nasty_lines(), title=NASTY))):
        tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        assert len(tables) > 4
        for table in tables:
            head, *rows = table.splitlines()
            assert {len(cells(row)) for row in rows} == {len(cells(head))}


def test_no_name_is_markup() -> None:
    text = markdown(report_of(nasty_lines(), title=NASTY, ab=()))
    outside = re.sub(r"<code>[^<]*</code>|`[^`\n]*`", "", text)
    assert "alert" in text
    assert not re.search(r"script|@user|\*e\*", outside.replace(outside.splitlines()[0], ""))
    assert "<script" not in text
    assert "\u202e" not in text
    tags = set(re.findall(r"</?[a-z]+", text))
    assert tags == {"<code", "</code", "<details", "</details", "<summary", "</summary"}
    assert outside.splitlines()[0].startswith("# &#60;script&#62;")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain, *not* <b> @me #1", "`plain, *not* <b> @me #1`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("a`b", "<code>a&#96;b</code>"),
        ("a\\", "<code>a&#92;</code>"),
        ("a\nb", "<code>a&#92;nb</code>"),
        ("", "\N{EN DASH}"),
        ("  ", "\N{EN DASH}"),
    ],
)
def test_code(text: str, said: str) -> None:
    assert code(text) == said


def test_it_says_first_whether_it_may_be_quoted() -> None:
    head = golden().split("## ")[0]
    assert "> [!CAUTION]" in head
    assert "**2 of 16 measured runs may not be quoted.**" in head
    assert "> [!IMPORTANT]" in head
    good = markdown(report_of(run_lines(0, "prod", None), ab=()))
    assert "[!" not in good


def test_each_number_that_may_not_be_quoted_is_marked() -> None:
    rows = [row for row in golden().splitlines() if row.startswith("| `trial` | `sweep32k`")]
    assert len(rows) == 2
    for row, said in zip(rows, ("`identity was not checked`", "as above"), strict=True):
        *values, why = cells(row)[4:]
        assert all("\N{CROSS MARK}" in value for value in values if value.strip())
        assert said in why


def test_long_lists_are_cut() -> None:
    lines = [line for at in range(MOST + 1) for line in run_lines(at, "prod", None, outcome="refused", exit_code=3)]
    assert f"The newest {MOST} of {MOST + 1}." in markdown(report_of(lines, ab=()))


if __name__ == "__main__":
    GOLDEN.write_text(golden(), encoding="utf-8")
