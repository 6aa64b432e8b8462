"""The plan, the metrics, the answers and the noise floor of A/Bs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from ab_kit import HOST, Book, arm, measured, place, swapped

from ttstack.bench.ab.design import orders, planned
from ttstack.bench.ab.floor import Floor, Wanted, ab_runs, find_floor
from ttstack.bench.ab.metrics import PRIMARY, better, metrics_of, primary
from ttstack.bench.ab.outputs import compare_outputs
from ttstack.bench.suites.registry import SUITES
from ttstack.errors import UsageError
from ttstack.records.types import Cell, Measured, MeasuredCheck

if TYPE_CHECKING:
    from pathlib import Path

NOISE = (1.0, 1.02, 0.99, 1.01)


# The plan


@pytest.mark.parametrize("pairs", [4, 6, 8, 20])
def test_an_even_number_is_balanced(pairs: int) -> None:
    assert sum(orders(pairs)) == pairs / 2


def test_runs_in_turns_are_abba_and_then_baab() -> None:
    made = planned("turns", 4, ("c0", "c1"), (2, 1))
    assert "".join(cell.side for pair in made for cell in pair) == "ABBABAAB"
    assert [cell.position for pair in made for cell in pair] == list(range(8))
    assert {cell.cards for pair in made for cell in pair if cell.side == "A"} == {("c0", "c1")}
    assert {cell.cards for pair in made for cell in pair if cell.side == "B"} == {("c0",)}
    assert [pair[0].order for pair in made] == ["ab", "ba", "ba", "ab"]


def test_what_drifts_faster_and_faster_takes_the_same_from_both() -> None:
    cells = [cell for pair in planned("turns", 4, ("c0",), (1, 1)) for cell in pair]
    for power in (0, 1, 2):
        sums = {side: sum(cell.position**power for cell in cells if cell.side == side) for side in "AB"}
        assert sums["A"] == sums["B"]


def test_arms_at_once_change_cards() -> None:
    made = planned("swap", 4, ("c0", "c1"), (1, 1))
    assert [tuple(cell.cards[0] for cell in pair) for pair in made] == [
        ("c0", "c1"), ("c1", "c0"), ("c1", "c0"), ("c0", "c1"),
    ]  # fmt: skip
    assert {(cell.order, cell.position == cell.pair) for pair in made for cell in pair} == {("", True)}


# Metrics


def test_a_metric_is_the_median_of_a_suite_or_of_a_valid_cell() -> None:
    cells = (
        Cell("b1", {}, values={"tg_ms_per_token": (3.0, 1.0, 2.0)}),
        Cell("c8", {}, reasons=("void",), values={"tg_ms_per_token": (9.0,)}),
    )
    values = {"ttft_s": (0.1, 0.3), "chunk_at_s": (1.0,), "zero_s": (0.0, 1.0), "none_s": ()}
    found = metrics_of(Measured("x", (MeasuredCheck("all", ok=True),), values, cells=cells))
    assert found == {"ttft_s": 0.2, "b1/tg_ms_per_token": 2.0}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("ttft_s", "lower"),
        ("b1/tg_ms_per_token", "lower"),
        ("streamed_tokens_per_s", "higher"),
        ("c8/goodput_requests_per_s", "higher"),
        ("c8/goodput_share", "higher"),
        ("chunk_at_s", None),
        ("cpu_share", None),
        ("something", None),
    ],
)
def test_the_unit_tells_which_way_is_better(name: str, way: str | None) -> None:
    assert better(name) == way


def test_one_metric_has_the_verdict() -> None:
    assert primary("smoke", None) == "request_s"
    assert primary("smoke", "ttft_s") == "ttft_s"
    with pytest.raises(UsageError, match="no metric of its own"):
        primary("unheard-of", None)
    with pytest.raises(UsageError, match="more or less"):
        primary("smoke", "cpu_share")
    assert {*PRIMARY} == {*SUITES}
    assert all(better(name) for name in PRIMARY.values())


# Answers


def test_equal_answers() -> None:
    found = compare_outputs([(0, {"p": "x"}, {"p": "x"}), (1, {"p": "x"}, {"p": "x"})])
    assert (found.compared, found.same, found.agreement, found.equal) == (2, 2, 1.0, True)


@pytest.mark.parametrize(
    ("a", "b", "first", "agreement"),
    [
        ("abcd", "abXd", 2, 0.5),
        ("abcd", "ab", 2, 0.5),
        ("", "x", 0, 0.0),
        ("sha256:" + "0" * 64, "sha256:" + "1" * 64, None, 0.0),
    ],
)
def test_where_answers_part(a: str, b: str, first: int | None, agreement: float) -> None:
    found = compare_outputs([(3, {"p": a, "q": "same"}, {"p": b, "q": "same"})])
    (other,) = found.others
    assert (other.pair, other.prompt, other.first, other.agreement) == (3, "p", first, agreement)
    assert found.agreement == (1 + agreement) / 2
    assert not found.equal


def test_an_answer_that_one_side_lacks_is_another_one() -> None:
    found = compare_outputs([(0, {"p": "x"}, {}), (1, {}, {"q": "x"})])
    assert [(other.prompt, other.first) for other in found.others] == [("p", None), ("q", None)]
    assert (found.steady_a, found.steady_b) == (False, False)


def test_nothing_compared_is_not_equal() -> None:
    found = compare_outputs([(0, {}, {})])
    assert (found.compared, found.agreement, found.equal) == (0, None, False)


# The floor


WANTED = Wanted("cardhost", simulated=False, suite="smoke", metric="request_s", mode="swap", arm="prod")


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "records.jsonl")


def test_the_floor_is_the_noise_of_the_newest_aa(book: Book) -> None:
    swapped(book, (1.0, 1.2, 0.8, 1.1), NOISE, plan={"id": "ab-old"})
    swapped(book, (1.0, 1.0, 1.0, 1.0), NOISE, plan={"id": "ab-new"})
    swapped(book, NOISE, NOISE, b_this=arm("mine", args={"x": 1}), plan={"id": "ab-other"})
    book.add(None)
    floor = find_floor(book.runs(), WANTED)
    assert floor is not None
    assert (floor.id, floor.pairs, floor.df, floor.arm) == ("ab-new", 4, 2, "prod")
    # logarithms 0, .0198, -.01005, .00995; by card of A (0, .00995) and (.0198, -.01005), so from their means twice
    # .004975 and twice .014926: sqrt((2 x .004975^2 + 2 x .014926^2) / 2)
    assert floor.noise == pytest.approx(0.015734, abs=1e-6)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("elsewhere", simulated=False, suite="smoke", metric="request_s", mode="swap"),
        Wanted("cardhost", simulated=True, suite="smoke", metric="request_s", mode="swap"),
        Wanted("cardhost", simulated=False, suite="infbench", metric="request_s", mode="swap"),
        Wanted("cardhost", simulated=False, suite="smoke", metric="ttft_s", mode="swap"),
        Wanted("cardhost", simulated=False, suite="smoke", metric="request_s", mode="turns"),
    ],
)
def test_an_aa_of_another_kind_is_no_floor(book: Book, wanted: Wanted) -> None:
    swapped(book, NOISE, NOISE)
    assert find_floor(book.runs(), wanted) is None
    assert find_floor(book.runs(), WANTED) is not None


def test_one_that_was_not_finished_or_is_invalid_is_no_floor(book: Book) -> None:
    swapped(book, NOISE[:3], NOISE[:3], plan={"pairs": 4, "id": "ab-open"})
    swapped(book, NOISE, NOISE, b_outputs={}, plan={"id": "ab-invalid"})
    assert find_floor(book.runs(), WANTED) is None


def test_one_that_found_a_difference_by_chance_counts_as_well(book: Book) -> None:
    """To leave it out would make the floor too low, as would be to choose among several."""
    swapped(book, (1.0, 1.001, 1.0, 1.001), (1.1, 1.1, 1.1, 1.1))
    floor = find_floor(book.runs(), WANTED)
    assert floor is not None
    assert floor.noise < 0.01


def test_one_of_the_same_arm_is_preferred(book: Book) -> None:
    swapped(book, NOISE, NOISE, plan={"id": "ab-own"})
    swapped(book, NOISE, NOISE, this=arm("tiny"), plan={"id": "ab-tiny"})
    floors = {name: find_floor(book.runs(), Wanted("cardhost", False, "smoke", "request_s", "swap", name))  # noqa: FBT003
              for name in ("prod", "tiny", "unknown")}  # fmt: skip
    assert [floor.id if floor else "" for floor in floors.values()] == ["ab-own", "ab-tiny", "ab-tiny"]


def test_the_age_of_a_floor() -> None:
    floor = Floor(0.01, 4, 2, "ab-1", "prod", "2026-01-31T12:00:00.000Z")
    assert floor.age_s(datetime(2026, 2, 1, 12, 0, 1, tzinfo=UTC)) == 86401


def test_runs_are_sorted_by_their_ab(book: Book) -> None:
    book.add(None)
    book.add(place(0, "A", id="ab-2"))
    book.add(place(0, "A", id="ab-1"))
    book.add(place(0, "B", id="ab-2"), cards=("c1",), host=HOST)
    assert {name: len(runs) for name, runs in ab_runs(book.runs()).items()} == {"ab-2": 2, "ab-1": 1}
    assert measured({"x_s": 1.0}, {}).ok
