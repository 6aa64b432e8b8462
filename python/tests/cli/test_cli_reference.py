from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from ttstack.cli.main import VERBS, main
from ttstack.cli.parsers import all_parsers, arguments, commands
from ttstack.cli.reference import meaning, reference_text
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "cli.md"
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")} - {PAGE})
PARSERS = all_parsers()

_CALL = re.compile(r"^ {4,}(?:\$ )?(?:sudo )?(?:\./bootstrap ttx|\./bootstrap(?= run)|nix run \.#ttx --|ttx) (.*)$")
_INLINE = re.compile(r"`(?:\./bootstrap )?ttx ([^`]*)`")


def _commands() -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for parser in PARSERS.values():
        inner = commands(parser)
        found |= {leaf.prog: leaf for leaf in inner.values()} if inner else {parser.prog: parser}
    return found


LEAVES = _commands()


def _calls(text: str) -> list[str]:
    """Find calls of ttx in code; two blanks before what explains one, a pipe leads elsewhere, VERB is any verb."""
    lines = [match[1] for line in text.splitlines() if (match := _CALL.match(line))] + _INLINE.findall(text)
    calls = [re.split(r"  |\|(?= )|[>;]|\.\.\.| #", line)[0].strip() for line in lines]
    return [call for call in calls if call and not call.startswith(("VERB", "-v]", "[-v]"))]


def _parse(call: str) -> None:
    words = shlex.split(call)
    if words[0] in {"--version", "--help"} or words[-1] == "--help":
        return
    if words[0] == "--arms":
        words = words[2:]
    parser = PARSERS[words[0]]
    if words[1:] and " ".join(["ttx", *words]) not in LEAVES:  # a text may just name it
        parser.parse_args(words[1:])


def test_the_page_is_fresh() -> None:
    stale = "refresh it, in python/: python -m ttstack.cli.reference > ../docs/reference/cli.md"
    assert PAGE.read_text(encoding="utf-8") == reference_text(), stale


def test_the_page_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = set()
    for columns, colour in (("20", "FORCE_COLOR"), ("300", "NO_COLOR")):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv(colour, "1")
        pages.add(reference_text())
        monkeypatch.delenv(colour)
    assert len(pages) == 1
    assert "\x1b" not in pages.pop()


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_everything_is_in_the_page(name: str) -> None:
    section = re.split(rf"^##+ {name}$", reference_text(), flags=re.MULTILINE)[1].split("\n## ")[0].split("\n### ")[0]
    for action in arguments(LEAVES[name]):
        assert action.help, f"{name}: {action.dest} is not described"
        assert meaning(action) in section
        assert all(f"`{option}" in section for option in action.option_strings)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_examples_can_be_typed(name: str) -> None:
    calls = _calls(indent(str(LEAVES[name].epilog), "  "))
    assert calls, f"{name} has no example"
    for call in calls:
        _parse(call)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_the_pages_can_be_typed(page: Path) -> None:
    for call in _calls(page.read_text(encoding="utf-8")):
        try:
            _parse(call)
        except (UsageError, KeyError):
            pytest.fail(f"{page}: there is no `ttx {call}`")


def test_calls_are_found() -> None:
    text = """
    ./bootstrap run sim     # from an arm to a record
    $ ttx records ls | head
`ttx unit ARM` and `ttx VERB --help`
ttx never does what is not written.
    nix run .#ttx -- slot ls
"""
    assert _calls(text) == ["run sim", "records ls", "slot ls", "unit ARM"]


def test_every_exit_code_is_explained() -> None:
    page = reference_text()
    assert all(f"\n| {int(code)} | " in page for code in Exit)


def test_the_usage_page_has_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == Exit.DONE
    page = capsys.readouterr().out
    assert all(f"\n  {name} " in page and text in page for name, text in VERBS.items())
    assert max(map(len, page.splitlines())) <= 120
