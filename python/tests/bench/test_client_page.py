"""docs/reference/client.md has the table of the reference server's modes.

``python tests/bench/test_client_page.py`` (with PYTHONPATH=.) writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from reference_modes import MODES

from ttstack.bench.client.types import VoidReason
from ttstack.markdown import code, table

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/client.md"
BEGIN, END = "<!-- made from the tests: begin -->", "<!-- made from the tests: end -->"


def made() -> str:
    """Make the table."""
    rows = []
    for name, mode in MODES.items():
        does = mode.does + (" (chat)" if mode.chat else "")
        rows.append((code(name), does, mode.says if mode.void is None else f"void: {code(mode.void.value)}"))
    return "\n".join(table(("mode", "the server", "the client"), rows))


def with_table(page: str) -> str:
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{made()}\n\n{END}{rest.partition(END)[2]}"


def test_the_page_has_the_table_of_the_modes() -> None:
    page = PAGE.read_text()
    assert page == with_table(page), "refresh it: PYTHONPATH=. python tests/bench/test_client_page.py"


def test_the_page_names_every_reason() -> None:
    page = PAGE.read_text().replace(made(), "")
    assert [reason.value for reason in VoidReason if f"| `{reason.value}` |" not in page] == []


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
