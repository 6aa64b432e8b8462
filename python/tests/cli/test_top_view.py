"""The screen of ttx top at every width: nothing is lost, nothing is wider than the terminal."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from top_kit import write_run

from ttstack.bench.traffic import Traffic
from ttstack.cli.top_cells import CARD_COLUMNS, RUN_COLUMNS, age, card_cells, run_cells, run_notes
from ttstack.cli.top_json import snapshot
from ttstack.cli.top_view import screen
from ttstack.host.holders import Holder, Holders
from ttstack.host.process import myself
from ttstack.host.telemetry import Telemetry
from ttstack.host.types import Card
from ttstack.run.control import LiveRun
from ttstack.run.top.types import CardNow, Metrics, Overview, RunNow
from ttstack.slots.claim import new_claim
from ttstack.slots.view import SlotView

if TYPE_CHECKING:
    from ttstack.run.state import RunFolder, State

WIDTHS = [60, 61, 72, 80, 99, 100, 120, 132, 157, 158, 159, 160, 199, 200]
BUSY = Traffic(1024.4, 612.34, 8, 2, 0.4149, 0.125, 1.5, 0.0512, 5e6, 1e6)
LINE = "(EngineCore pid=87) INFO 08-12 10:11:12 [loggers.py:1] Avg generation throughput: 612.3 tokens/s 日本語"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, State]:
    return write_run(tmp_path_factory.mktemp("view"), 8000, "prod")


@pytest.fixture
def full(written: tuple[RunFolder, State]) -> Overview:
    folder, state = written
    first = Card("/dev/tenstorrent/0", 0, "0000:01:00.0", "0000004051194000", "1", "p150a")
    second = Card("/dev/tenstorrent/1", 1, "0000:02:00.0", "0000004051194001", "2", "p150a")
    claim = new_claim(state.run, state.arm, myself())
    opened = Holders((Holder(4711, "python3 train.py"),))
    held = SlotView(first, "held", claim, Holders(), owner_lives=True)
    lost = SlotView(second, "open", None, opened, owner_lives=False)
    hot, silent = Telemetry(51.24, 1350.0, 75.06), Telemetry(None, None, None)
    cards = (
        CardNow(first, simulated=False, telemetry=hot, beats=True, slot=held),
        CardNow(second, simulated=False, telemetry=silent, beats=False, slot=lost),
    )
    ready = LiveRun(folder, state, supervised=True, engine=())
    other = dataclasses.replace(state, run="r2", arm="fork", phase="booting", step="weights")
    booting = LiveRun(folder, other, supervised=True, engine=())
    late = Metrics("no_answer", detail="it has not answered for 3 s")
    runs = (
        RunNow(ready, 7384.0, 12_345_678_901, LINE, Metrics("answered", BUSY)),
        RunNow(booting, 59.9, None, "evil \x1b[2J\x07 line", late),
    )
    return Overview(1e9, cards, runs, 64 * 10**9, 128 * 10**9, ("run x is left out: bad state",))


FACTS = [
    *("ttx top", "every 1 s", "64.0 GB free of 128.0 GB", "run x is left out"),
    *("0000004051194000", "0000:01:00.0", "p150a", "51.2 °C", "1350 MHz", "75.1 W", "alive", "STOPPED"),
    *("held", "open", "arm-prod (20260131T235959-prod, ", "pid 4711"),
    *(
        "arm-prod",
        "ready",
        "2 h 3 min",
        "612",
        "1024",
        "41 %",
        "12 %",
        "1.50 s",
        "51.2 ms",
        "12.3 GB",
        "8000",
        "answers",
    ),
    *("fork", "booting", "step weights", "no answer", "it has not answered for 3 s"),
    *("(EngineCore pid=87) INFO", "evil \\x1b[2J\\x07 line"),
]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_fact_is_on_every_screen(full: Overview, width: int) -> None:
    lines = screen(full, width, 100, every_s=1.0)
    text = "\n".join(line.plain for line in lines)
    missing = [fact for fact in FACTS if fact not in text]
    assert missing == []
    assert re.search(r"\b8\b.*\b2\b", text, re.DOTALL)
    assert all(cell_len(line.plain) <= width for line in lines)
    assert "\x1b" not in text


def test_wide_screens_have_tables_and_narrow_ones_flow(full: Overview) -> None:
    wide, narrow = (screen(full, width, 100, every_s=1.0) for width in (200, 60))
    assert any(line.plain.split()[:3] == ["ARM", "STATUS", "AGE"] for line in wide)
    assert not any("GEN TOK/S" in line.plain for line in narrow)
    assert any("gen 612 tok/s" in line.plain for line in narrow)
    assert any("8 running" in line.plain for line in narrow)


@pytest.mark.parametrize("width", [60, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 10, 13])
def test_what_does_not_fit_is_counted(full: Overview, width: int, height: int) -> None:
    whole = screen(full, width, 100, every_s=1.0)
    lines = screen(full, width, height, every_s=1.0)
    assert len(lines) == min(height, len(whole))
    if len(whole) > height:
        assert lines[-1].plain.startswith(f"and {len(whole) - height + 1} more lines")


@settings(deadline=None)
@given(
    width=st.integers(1, 300),
    height=st.integers(1, 60),
    line=st.text(max_size=300),
    detail=st.text(max_size=50),
    arm=st.text(min_size=1, max_size=70),
    value=st.none() | st.floats(0, 1e15),
    encoding=st.sampled_from(["utf-8", "ascii", "latin-1"]),
)
def test_no_line_is_ever_wider_than_the_terminal(  # noqa: PLR0913, PLR0917 - what varies, by name
    written: tuple[RunFolder, State],
    width: int,
    height: int,
    line: str,
    detail: str,
    arm: str,
    value: float | None,
    encoding: str,
) -> None:
    folder, state = written
    traffic = Traffic(value, value, value, value, value, value, value, value)
    live = LiveRun(folder, dataclasses.replace(state, arm=arm), supervised=True, engine=())
    run = RunNow(live, value, None if value is None else int(value), line, Metrics("answered", traffic, detail))
    seen = Overview(1e9, (), (run, run), None, None, (detail,))
    lines = screen(seen, width, height, every_s=0.5, encoding=encoding)
    assert len(lines) <= height
    assert all(cell_len(each.plain) <= width for each in lines)
    for each in lines:
        assert each.plain.isprintable()
        each.plain.encode(encoding)


def test_nothing_known_is_a_screen_too() -> None:
    lines = screen(Overview(1e9, (), (), None, None), 80, 24, every_s=2.0)
    assert [line.plain for line in lines[1:]] == ["", "no cards", "", "nothing runs here"]
    assert lines[0].plain.endswith("q quits")


def test_a_terminal_without_the_letters_gets_others(full: Overview) -> None:
    text = "\n".join(line.plain for line in screen(full, 200, 100, every_s=1.0, encoding="ascii"))
    assert text.isascii()
    assert "51.2 C" in text
    assert "\\u65e5" in text


def test_bad_news_is_red(full: Overview) -> None:
    lines = screen(full, 200, 100, every_s=1.0)
    red = {line.plain[span.start : span.end] for line in lines for span in line.spans if "red" in str(span.style)} | {
        line.plain for line in lines if "red" in str(line.style)
    }
    assert {"STOPPED", "no answer", "it has not answered for 3 s", "run x is left out: bad state"} <= red
    assert not {"alive", "answers", "ready"} & red


def test_cells_are_those_of_the_columns(full: Overview) -> None:
    assert {len(card_cells(card)) for card in full.cards} == {len(CARD_COLUMNS)}
    assert {len(run_cells(run)) for run in full.runs} == {len(RUN_COLUMNS)}
    assert [cell.text for cell in run_notes(full.runs[1])][:2] == ["step weights", "it has not answered for 3 s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h 0 min"),
        (86399, "23 h 59 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_json_says_what_the_page_promises(full: Overview) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/reference/top.md").read_text(encoding="utf-8")
    told = snapshot(full)
    for table in (told, *told["cards"], *told["runs"], told["cards"][0]["slot"]):
        assert [
            key
            for key in table
            if f"`{key}`" not in page and f"`{key}[]`" not in page and f"`runs[].{key}`" not in page
        ] == []
    first, second = told["runs"]
    assert first["generation_tokens_per_s"] == 612.34
    assert second["generation_tokens_per_s"] is None
    assert (first["server"], second["server"]) == ("answered", "no_answer")
    assert [card["heartbeat_moves"] for card in told["cards"]] == [True, False]
    assert told["cards"][0]["slot"]["claim"]["arm"] == "arm-prod"
    assert told["at"] == "2001-09-09T01:46:40.000+00:00"
