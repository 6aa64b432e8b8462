from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from ttstack.cli.checklist import Board, Plain, checklist

if TYPE_CHECKING:
    from ttstack.run.report import Reporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tell(reporter: Reporter) -> None:
    reporter.begin("slot")
    reporter.end("slot", ok=True, seconds=0.01)
    reporter.begin("boot")
    reporter.detail("mesh")
    reporter.end("boot", ok=True, seconds=1.5)
    reporter.begin("identify")
    reporter.check("listener", ok=True)
    reporter.check("served_root", ok=False, detail="it is [red]another[/red]")
    reporter.check("environment", ok=None, detail="gone")
    reporter.end("identify", ok=False, seconds=0.1)
    reporter.lines("the last lines", ["TT_FATAL [x]"])


def test_plain_lines_have_no_colour_and_say_everything() -> None:
    stream = io.StringIO()
    with checklist("ttx run x", stream) as reporter:
        tell(reporter)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert text.splitlines() == [
        "ttx run x",
        "slot      ok 0.01 s",
        "  boot: mesh",
        "boot      ok 1.50 s",
        "  identify: ok listener",
        "  identify: NO served_root: it is [red]another[/red]",
        "  identify: ?? environment: gone",
        "identify  FAILED 0.10 s",
        "the last lines:",
        "  | TT_FATAL [x]",
    ]


def test_a_reader_that_went_away_does_not_stop_the_run() -> None:
    stream = io.StringIO()
    reporter = Plain("x", stream)
    stream.close()
    tell(reporter)


def test_a_terminal_gets_the_live_list_without_markup_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    with checklist("ttx run x", stream) as reporter:
        assert isinstance(reporter, Board)
        tell(reporter)
    text = stream.getvalue()
    assert "✓" in text
    assert "✗" in text
    assert "[red]another[/red]" in text
    assert "TT_FATAL [x]" in text
    assert "\x1b[32m" in text  # green


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_off_when_asked_or_not_there(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    stream = Terminal()
    with checklist("ttx run x", stream) as reporter:
        tell(reporter)
    assert "\x1b[3" not in stream.getvalue()


def test_phases_that_are_to_come_are_listed() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=100)
    board = Board("ttx run x", console)
    board.begin("slot")
    console.print(board)
    assert "measure" in stream.getvalue()


def test_a_narrow_terminal_hides_nothing() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=40)
    board = Board("ttx run x: a title", console)
    board.begin("identify")
    board.check("served_root", ok=False, detail=f"served_root is {'/a-long-folder' * 5}/end")
    console.print(board)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "ttx run x: a title"
    assert max(map(len, lines)) <= 40
    assert "/end" in stream.getvalue()
    assert "…" not in stream.getvalue()
    assert stream.getvalue().count("served_root") == 1


def test_what_others_print_moves_no_cursor_and_makes_no_line() -> None:
    stream = io.StringIO()
    for reporter in (Plain("t", stream), Board("t", Console(file=stream))):
        stream.truncate(0)
        reporter.begin("boot")
        reporter.lines("the last lines", ["\x1b[2Jmeasure   ok", "stop ok\r", "a\tb"])
        text = stream.getvalue()
        assert "\x1b" not in text
        assert "\r" not in text
        assert r"\x1b[2Jmeasure" in text
        assert "a  " in text
    plain = io.StringIO()
    Plain("t", plain).check("x", ok=False, detail="y\nstop      ok")
    assert len(plain.getvalue().splitlines()) == 2
