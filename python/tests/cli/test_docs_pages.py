"""The pages that are written by hand: what they point at is there, and what must be in them is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
INDEX = DOCS / "reference" / "README.md"
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")})

_LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]*)(?:#([^)]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"TTX_[A-Z_]+")


def _anchors(page: Path) -> set[str]:
    """Give the anchors of a page's headings: lower case, blanks to dashes, most punctuation gone."""
    titles = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page}: there is no {target}"
        assert not anchor or anchor in _anchors(there), f"{page}: {there.name} has no heading for #{anchor}"


def test_every_page_is_in_the_index() -> None:
    linked = {(INDEX.parent / target).resolve() for target, _ in _LINK.findall(INDEX.read_text(encoding="utf-8"))}
    assert {page for page in DOCS.rglob("*.md") if page != INDEX} <= linked


def test_every_variable_that_is_read_is_explained() -> None:
    sources = [*(ROOT / "python" / "ttstack").rglob("*.py"), ROOT / "bootstrap"]
    read = {name for source in sources for name in _VARIABLE.findall(source.read_text(encoding="utf-8"))}
    page = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    explained = set(_VARIABLE.findall(page))
    # how the tests of bootstrap tell it which distribution it is on
    assert read - {"TTX_OS_RELEASE"} == explained


def test_the_modules_that_hosts_import_are_there() -> None:
    modules = (ROOT / "modules" / "default.nix").read_text(encoding="utf-8")
    names = {name for page in PAGES for name in re.findall(r"nixosModules\.([\w-]+)", page.read_text(encoding="utf-8"))}
    assert names
    assert all(re.search(rf"^  {name} = \./", modules, re.MULTILINE) for name in names)
