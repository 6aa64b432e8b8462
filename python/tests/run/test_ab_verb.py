"""What ``ttx ab`` says: before an A/B, while it goes on, and of what it came to."""

from __future__ import annotations

import io
import json
import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from ab_kit import HOST, Book, arm, place, swap_cards, swapped

from ttstack.bench.ab.effect import Pair, effects
from ttstack.bench.ab.floor import ab_runs
from ttstack.bench.ab.verdict import MetricFound, judge
from ttstack.cli.ab_board import LiveAb, PlainAb, ab_board
from ttstack.cli.ab_text import forest
from ttstack.cli.main import main
from ttstack.cli.verbs.ab import _share
from ttstack.run.ab.cell import CellOrder, read_order

if TYPE_CHECKING:
    from pathlib import Path

NOISE = (1.0, 1.002, 0.999, 1.001)
FASTER = tuple(0.9 * value for value in (1.001, 1.0, 1.002, 0.999))
OTHER = arm("mine", args={"max-num-seqs": 8})
HERE = replace(HOST, hostname=platform.node())


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Book:
    monkeypatch.setenv("TTX_STATE", str(tmp_path))
    return Book(tmp_path / "records.jsonl")


def ttx(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["ab", *words]) == code
    return capsys.readouterr().out


def test_a_verdict_says_by_how_much_and_of_what(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    swapped(book, NOISE, FASTER, b_this=OTHER)
    text = ttx(capsys, "show")
    lines = text.splitlines()
    assert lines[0] == "a/b      ab-1: prod (A) against mine (B)"
    assert lines[1].startswith("verdict  better (request_s: B's is -10.0")
    assert "A's, and lower is better)" in lines[1]
    assert "design   4 pairs, both at once on a card each, changing cards; 4 count, 0 do not" in lines
    assert "differs  arm.engine.args.max-num-seqs: A None, B 8" in lines
    assert "method   paired, ratios, t interval of 95%, n = 4, 2 degrees of freedom" in lines
    assert any(line.startswith("cards    ") and "the second against the first" in line for line in lines)
    assert sum(line.endswith("  yes") for line in lines) == 8
    table = json.loads(ttx(capsys, "show", "ab-1", "--json"))
    assert (table["verdict"], table["exit_code"], table["concurrent"]) == ("better", 0, True)
    assert table["metrics"][0]["treatment"]["share"] == pytest.approx(-0.1, abs=0.001)
    assert table["metrics"][0]["card"]["low"] < 0 < table["metrics"][0]["card"]["high"]
    assert table["metrics"][0]["period"] is None
    assert {cell["counts"] for cell in table["cells"]} == {True}
    assert table["cells"][0]["values"] == {"request_s": 1.0}
    assert table["stop_rule"] == "the number of pairs was fixed before the first one"


def test_what_has_no_verdict_says_why_and_exits_so(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    for pair in range(2):
        book.add(place(pair, "A"), 3.25, cards=swap_cards(pair, "A"))
        book.add(place(pair, "B"), cards=swap_cards(pair, "B"), outcome="refused", exit_code=3, text="all\x1b taken")
    text = ttx(capsys, "show", code=3)
    assert "2 of 4 pairs do not count, and no more than 1 may be missing" in text
    assert "no: refused: all\\x1b taken" in text
    assert "no: B of this pair does not" in text


def test_nothing_measured_is_shown_of_one_that_goes_on(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    book.add(place(0, "A"), 3.2519, cards=("c0",))
    book.add(place(0, "B"), 4.7523, cards=("c1",))
    assert not any(
        value in ttx(capsys, "show", *more, code=5) for more in ((), ("--json",)) for value in ("3.2519", "4.7523")
    )
    assert "not finished" in ttx(capsys, "ls")


def test_one_is_found_by_the_start_of_its_id(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ab-20260101", "ab-20260102"):
        swapped(book, NOISE, NOISE, plan={"id": name})
    assert "ab-20260102" in ttx(capsys, "show").splitlines()[0]
    assert "ab-20260101" in ttx(capsys, "show", "ab-20260101").splitlines()[0]
    ttx(capsys, "show", "ab-2026", code=2)
    ttx(capsys, "show", "x", code=2)
    rows = ttx(capsys, "ls").splitlines()
    assert [row.split()[0] for row in rows] == ["A/B", "ab-20260101", "ab-20260102"]
    assert [each["verdict"] for each in json.loads(ttx(capsys, "ls", "--json"))] == 2 * ["no difference detected"]


# Power


def test_power_from_a_noise_that_is_given(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    assert not book.path.exists()
    text = ttx(capsys, "power", "--effect", "2%", "--noise", "2%")
    assert text == "12 pairs show a difference of 2.00 % in 80% of cases, with noise of 2.00 % from pair to pair\n"
    table = json.loads(ttx(capsys, "power", "--effect", "0.02", "--noise", "0.02", "--json"))
    assert table == {"effect": 0.02, "noise": 0.02, "power": 0.8, "level": 0.95, "pairs": 12, "floor": None}


def test_power_from_the_floor_of_this_host_and_its_age(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    swapped(book, (1.0, 1.0, 1.0, 1.0), (1.0, 1.02, 0.99, 1.01), host=HERE)
    text = ttx(capsys, "power", "--effect", "2%")
    assert "with noise of 1.57 % from pair to pair (A/A ab-1 of prod, 4 pairs, 0 s ago)" in text
    assert json.loads(ttx(capsys, "power", "--effect", "2%", "--json"))["floor"]["id"] == "ab-1"
    ttx(capsys, "power", "--effect", "2%", "--one-at-a-time", code=2)
    ttx(capsys, "power", "--effect", "2%", "--simulated", code=2)


def test_shares_are_percent_or_not() -> None:
    assert (_share("2%"), _share("0.02"), _share("12.5%")) == (0.02, 0.02, 0.125)


# The plot


def metric(name: str, *d: float) -> MetricFound:
    return MetricFound(name, "lower", 1.0, 1.0, 0.0, effects([Pair(1.0, 1.0 + each) for each in d]))


def test_a_forest_plot_is_on_the_scale_of_the_first() -> None:
    assert forest([metric("a_s", -0.04, -0.05, -0.06), metric("other_s", 0.5, 0.1, 0.9), metric("c_s", 0.0)]) == [
        "         -14.9 %             0             +14.9 %",
        "a_s                [--o---]  :                      -5.00 % [-7.46 %, -2.49 %]",
        "other_s  <-------------------:-------------------o  +46.36 % [-25.92 %, +189.15 %]",
        "c_s                          o                      +0.00 %",
    ]


# While it goes on


ORDER = CellOrder("/arms/prod.toml", "prod", 8000, ("c0",), "smoke", {"runs": 3}, None, place(0, "A"), 17)
EVENTS: list[dict[str, Any]] = [
    {"event": "begin", "phase": "boot"},
    {"event": "detail", "text": "weights"},
    {"event": "end", "phase": "boot", "ok": True, "seconds": 1.25},
    {"event": "check", "name": "served_root", "ok": False, "detail": "is /other"},
    {"event": "check", "name": "image", "ok": True, "detail": ""},
    {"event": "wait", "what": "to measure"},
    {"event": "lines", "title": "log", "lines": []},
]
OVER = {"event": "over", "run": "r-1", "exit_code": 4, "text": "not so"}


def test_an_order_comes_back_as_it_was() -> None:
    for order in (ORDER, replace(ORDER, place=None, wait_s=600.0)):
        assert read_order(order.to_text()) == order


def test_plain_lines_say_what_goes_on() -> None:
    stream = io.StringIO()
    with ab_board("title", 4, stream) as board:
        assert isinstance(board, PlainAb)
        board.warm_up("B", ORDER)
        board.pair(0, {"A": ORDER}, 1)
        for event in [*EVENTS, OVER]:
            board.cell("A", event)
        board.counted(0, ["refused: not so"])
        board.counted(1, [])
    assert stream.getvalue().splitlines() == [
        "title",
        "before the pairs: B prod builds its tensor cache on c0",
        "pair 1/4, attempt 2: A prod on c0",
        "  1A boot      ok 1.25 s",
        "  1A NO served_root: is /other",
        "  1A over, exit 4, r-1: not so",
        "pair 1/4 does not count: refused: not so",
        "pair 2/4 counts",
    ]


def test_a_reader_who_goes_away_ends_nothing() -> None:
    stream = io.StringIO()
    board = PlainAb("title", 4, stream)
    stream.close()
    board.pair(0, {"A": ORDER}, 0)
    board.counted(0, [])


def test_a_terminal_shows_the_runs_of_the_pair_that_goes_on() -> None:
    from rich.console import Console  # noqa: PLC0415 - as the board does

    def drawn() -> str:
        console = Console(file=io.StringIO(), width=100, force_terminal=False)
        console.print(board)
        return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]

    board = LiveAb("title", 4)
    board.warm_up("B", ORDER)
    assert "builds its tensor cache" in drawn()
    board.pair(0, {"A": ORDER, "B": replace(ORDER, name="mine")}, 0)
    for event in EVENTS[:2]:
        board.cell("A", event)
    assert "A prod on c0: boot: weights" in drawn()
    board.cell("A", EVENTS[5])
    assert "A prod on c0: waits for the other one to measure" in drawn()
    assert "B mine on c0: starts" in drawn()
    board.cell("A", OVER)
    assert "over, exit 4 not so" in drawn()
    board.counted(0, [])
    assert "1 of 4 pairs" in drawn()
    assert "prod on c0" not in drawn()
    board.pair(1, {"A": ORDER}, 0)
    assert "B mine" not in drawn()


def test_a_turn_keeps_the_run_before_it(book: Book) -> None:
    board = LiveAb("title", 4)
    board.pair(0, {"A": ORDER}, 0)
    board.pair(0, {"B": ORDER}, 0)
    assert set(board._runs) == {"A", "B"}
    swapped(book, NOISE, NOISE)
    (runs,) = ab_runs(book.runs()).values()
    assert judge(runs).metrics[0].drift == pytest.approx(0.0, abs=0.001)
