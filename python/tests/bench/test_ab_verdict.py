from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from ab_kit import ANSWERS, HOST, NO, Book, arm, place, swap_cards, swapped

from ttstack.bench.ab.floor import ab_runs
from ttstack.bench.ab.verdict import judge
from ttstack.errors import Exit
from ttstack.records.context import HostState

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.bench.ab.verdict import Report

NOISE = (1.0, 1.002, 0.999, 1.001)
FASTER = tuple(0.9 * value for value in (1.001, 1.0, 1.002, 0.999))
OTHER = arm("mine", args={"max-num-seqs": 8})


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "records.jsonl")


def report_of(book: Book) -> Report:
    (runs,) = ab_runs(book.runs()).values()
    return judge(runs)


def test_less_time_is_better(book: Book) -> None:
    swapped(book, NOISE, FASTER, b_this=OTHER)
    report = report_of(book)
    assert (report.verdict, report.exit_code, report.reasons) == ("better", Exit.DONE, ())
    first = report.metrics[0]
    assert (first.name, first.better, first.effects.n, first.effects.df) == ("request_s", "lower", 4, 2)
    assert first.effects.treatment.share == pytest.approx(-0.1, abs=0.002)
    assert (report.arms, report.one_arm, report.counted, report.missing) == (("prod", "mine"), False, 4, 0)
    assert [each.key for each in report.declared] == ["arm.engine.args.max-num-seqs"]


def test_the_value_of_a_boot_is_the_median_of_its_requests(book: Book) -> None:
    swapped(book, NOISE, FASTER, b_this=OTHER)
    assert report_of(book).metrics[0].a == pytest.approx(1.0005)


def test_more_tokens_a_second_are_better(book: Book) -> None:
    swapped(book, [{"x_tokens_per_s": v} for v in NOISE], [{"x_tokens_per_s": v} for v in FASTER],
            b_this=OTHER, plan={"metric": "x_tokens_per_s"})  # fmt: skip
    assert report_of(book).verdict == "worse"


def test_a_difference_within_the_noise_is_none(book: Book) -> None:
    swapped(book, NOISE, (1.001, 1.0, 1.002, 0.999), b_this=OTHER)
    report = report_of(book)
    assert (report.verdict, report.exit_code) == ("no difference detected", Exit.DONE)


def test_a_slower_card_is_no_slower_arm(book: Book) -> None:
    """1 % of drift from run to run, a second card that is 3 % slower, A equal to B."""
    a, b = [], []
    for pair, noise in enumerate((1.0, 1.001, 0.999, 1.0005)):
        base = 1.01**pair
        slow = swap_cards(pair, "A") == ("c1",)
        a.append(base * (1.03 if slow else 1.0))
        b.append(base * (1.0 if slow else 1.03) * noise)
    swapped(book, a, b)
    report = report_of(book)
    assert (report.verdict, report.one_arm) == ("no difference detected", True)
    card = report.metrics[0].effects.card
    assert card is not None
    assert card.share == pytest.approx(0.03, abs=0.001)


def test_the_first_card_is_the_first_on_the_bus(book: Book) -> None:
    """Whichever A had first, and whatever they are called."""
    for pair, (a, b) in enumerate(zip((1.03, 1.0, 1.0, 1.03), (1.001, 1.03, 1.029, 1.0), strict=True)):
        for side, value, card in (("A", a, ("c1", "z")), ("B", b, ("z", "c1"))):
            book.add(place(pair, side), value, cards=(card[0 if pair in {0, 3} else 1],), this=arm(side))  # type: ignore[arg-type]
    card = report_of(book).metrics[0].effects.card
    assert card is not None
    assert card.share == pytest.approx(0.03, abs=0.001)


def test_turns_on_the_same_cards_have_a_period_effect(book: Book) -> None:
    run = 0
    for pair in range(4):
        for side in ("AB", "BA", "BA", "AB")[pair]:
            where = place(pair, side, turns=True)  # type: ignore[arg-type]
            assert where.position == run
            book.add(where, 1.01**run * (1 + 0.0001 * (run % 3)), cards=("c0", "c1"))
            run += 1
    report = report_of(book)
    assert (report.verdict, report.mode) == ("no difference detected", "turns")
    seen = report.metrics[0].effects
    assert seen.card is None
    assert seen.period is not None
    assert seen.period.share == pytest.approx(0.01, abs=0.001)


def test_other_metrics_have_intervals_and_no_verdict(book: Book) -> None:
    a = [{"request_s": value, "ttft_s": value / 10, "chunk_at_s": 3.0} for value in NOISE]
    b = [{"request_s": value, "ttft_s": value / 20, "chunk_at_s": 3.0} for value in NOISE]
    b[2]["only_here_s"] = 1.0
    swapped(book, a, b, b_this=OTHER)
    report = report_of(book)
    assert report.verdict == "no difference detected"
    assert [metric.name for metric in report.metrics] == ["request_s", "ttft_s"]
    assert report.metrics[1].effects.treatment.told


# What is missing


def test_nothing_is_told_before_the_last_pair(book: Book) -> None:
    for pair in range(3):
        for side in ("A", "B"):
            book.add(place(pair, side), 1.0, cards=swap_cards(pair, side))  # type: ignore[arg-type]
    report = report_of(book)
    assert (report.verdict, report.finished, report.metrics) == ("insufficient", False, ())
    assert report.reasons == ("3 of 4 pairs are measured; nothing is told before the last one",)
    assert report.exit_code == Exit.NOT_QUOTABLE


def test_a_run_that_goes_on_keeps_it_open(book: Book) -> None:
    swapped(book, NOISE[:3], NOISE[:3], plan={"pairs": 4})
    book.add(place(3, "A"), cards=swap_cards(3, "A"), close=False)
    book.add(place(3, "B"), cards=swap_cards(3, "B"))
    (runs,) = ab_runs(book.runs()).values()
    assert not judge([replace(run, alive=run.raw_close is None) for run in runs]).finished
    assert not judge(runs).finished  # nor is a pair over when one of its runs was cut short


def test_a_refused_run_is_listed_and_its_pair_does_not_count(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    refused = book.add(
        place(3, "B"), cards=swap_cards(3, "B"), this=OTHER, outcome="refused", exit_code=3, reason="busy", text="taken"
    )
    book.add(place(3, "A"), 5.0, cards=swap_cards(3, "A"))
    report = report_of(book)
    assert (report.verdict, report.counted, report.missing) == ("better", 3, 1)
    assert report.metrics[0].effects.df == 1
    against = {cell.record.id: cell.against for cell in report.cells}
    assert against[refused] == ("refused: taken",)
    assert len(against) == 8


@pytest.mark.parametrize(
    ("closes", "code"),
    [
        ({"outcome": "refused", "exit_code": 3, "reason": "busy"}, Exit.REFUSED),
        ({"outcome": "failed", "exit_code": 1, "reason": "engine_died"}, Exit.NOT_QUOTABLE),
        ({"outcome": "refused", "exit_code": 4, "reason": "identity", "identity": NO}, Exit.IDENTITY),
    ],
)
def test_too_many_that_do_not_count_are_the_end(book: Book, closes: dict[str, object], code: Exit) -> None:
    for pair in range(2):
        book.add(place(pair, "A"), 1.0, cards=swap_cards(pair, "A"))
        book.add(place(pair, "B"), cards=swap_cards(pair, "B"), this=OTHER, **closes)
    report = report_of(book)
    assert (report.verdict, report.finished, report.missing, report.exit_code) == ("insufficient", True, 2, code)
    assert "2 of 4 pairs do not count, and no more than 1 may be missing" in report.reasons


def test_a_run_that_may_not_be_quoted_does_not_count(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    book.add(place(3, "A"), 5.0, cards=swap_cards(3, "A"), suite={"void": 1})
    book.add(place(3, "B"), 1.0, cards=swap_cards(3, "B"), this=OTHER)
    report = report_of(book)
    assert (report.verdict, report.counted) == ("better", 3)
    assert report.cells[6].against == ("suite smoke: 1 of 3 requests are void",)


def test_the_same_card_in_all_that_is_left_is_not_enough(book: Book) -> None:
    for pair in range(4):
        for side in ("A", "B"):
            first = ("c0",) if side == "A" else ("c1",)
            book.add(place(pair, side), NOISE[pair], cards=first)  # type: ignore[arg-type]
    report = report_of(book)
    assert report.verdict == "insufficient"
    assert report.reasons == ("a difference of the arms cannot be told from one of the card",)


def test_two_pairs_are_too_few(book: Book) -> None:
    swapped(book, NOISE[:2], FASTER[:2], b_this=OTHER)
    report = report_of(book)
    assert (report.verdict, report.reasons) == (
        "insufficient",
        ("2 pairs are too few to tell a difference from noise",),
    )


def test_a_metric_that_there_is_not_ends_it_at_once(book: Book) -> None:
    book.add(place(0, "A", metric="nope_s"), 1.0, cards=("c0",))
    book.add(place(0, "B", metric="nope_s"), 1.0, cards=("c1",))
    report = report_of(book)
    assert (report.verdict, report.finished) == ("insufficient", True)
    assert "it has no usable nope_s; it has: request_s" in report.reasons[0]


# Attempts


def test_an_interrupted_pair_is_measured_again_and_both_are_listed(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    cut = [
        book.add(place(3, "A"), 77.0, cards=swap_cards(3, "A")),
        book.add(place(3, "B"), cards=swap_cards(3, "B"), this=OTHER, outcome="interrupted", exit_code=130),
    ]
    book.add(place(3, "A", attempt=1), NOISE[3], cards=swap_cards(3, "A"))
    book.add(place(3, "B", attempt=1), FASTER[3], cards=swap_cards(3, "B"), this=OTHER)
    report = report_of(book)
    assert (report.verdict, report.counted, report.missing) == ("better", 4, 0)
    assert [cell.record.id for cell in report.pairs[3].others] == cut
    assert len(report.cells) == 10


def test_nobody_measures_again_until_the_numbers_please(book: Book) -> None:
    swapped(book, NOISE, NOISE, b_this=OTHER)
    for attempt in (1, 2):
        book.add(place(0, "A", attempt=attempt), 1.0, cards=("c0",))
        book.add(place(0, "B", attempt=attempt), 0.5, cards=("c1",), this=OTHER)
    report = report_of(book)
    assert report.verdict == "no difference detected"
    assert [cell.values["request_s"] for cell in report.pairs[0].cells.values()] == [1.0, 1.0]
    assert len(report.pairs[0].others) == 4


def test_a_run_that_is_there_twice_is_not_lost(book: Book) -> None:
    swapped(book, NOISE, NOISE, b_this=OTHER)
    book.add(place(0, "B"), 0.5, cards=("c1",), this=OTHER)
    report = report_of(book)
    assert len(report.cells) == 9
    assert report.pairs[0].cells["B"].values["request_s"] == 1.0


# What may not be compared


def test_an_arm_that_asks_for_something_else_than_before_is_invalid(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    book.add(place(3, "A"), 1.0, cards=swap_cards(3, "A"))
    changed = book.add(place(3, "B"), 0.9, cards=swap_cards(3, "B"), this=arm("mine", args={"max-num-seqs": 9}))
    report = report_of(book)
    assert (report.verdict, report.metrics, report.exit_code) == ("invalid", (), Exit.NOT_QUOTABLE)
    assert report.reasons == (
        f"run {changed} of arm B asked for something else than its first run: argv, arm.engine.args.max-num-seqs",
    )


@pytest.mark.parametrize("key", ["pin_digest", "model_digest", "suite", "settings", "secrets", "argv"])
def test_every_part_of_what_is_asked_counts(book: Book, key: str) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    value = {"settings": {"runs": 9}, "secrets": ("TOKEN",), "argv": ("x",)}.get(key, "d")
    book.add(place(3, "A"), 1.0, cards=swap_cards(3, "A"), asks={key: value})
    report = report_of(book)
    assert report.verdict == "invalid"
    assert key in report.reasons[0]


def test_a_file_that_was_moved_asks_for_the_same(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    for side, this in (("A", arm()), ("B", OTHER)):
        moved = {**this, "file": "/elsewhere/x.toml", "description": "better words"}
        book.add(place(3, side), 1.0, cards=swap_cards(3, side), this=moved)  # type: ignore[arg-type]
    assert report_of(book).verdict in {"better", "no difference detected"}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"image": "sha256:2"}, "image"),
        ({"host": replace(HOST, kernel="6.13.0")}, "host.kernel"),
        ({"host": replace(HOST, boot_id="b-2")}, "host.boot_id"),
        ({"host": replace(HOST, hostname="other")}, "host.hostname"),
    ],
)
def test_what_no_arm_declares_must_not_differ_within_a_pair(book: Book, change: dict[str, object], key: str) -> None:
    swapped(book, NOISE, FASTER, b_this=OTHER, **{f"b_{name}": value for name, value in change.items()})
    report = report_of(book)
    assert report.verdict == "invalid"
    assert report.reasons[0] == f"the runs of pair 0 differ in what no arm declares: {key}"


def test_a_pair_that_two_versions_of_ttx_measured_does_not_count(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    book.add(place(3, "A"), 1.0, cards=swap_cards(3, "A"))
    book.add(place(3, "B"), 1.0, cards=swap_cards(3, "B"), this=OTHER, dirty="d" * 64)
    report = report_of(book)
    assert (report.verdict, report.counted, report.missing) == ("better", 3, 1)
    assert report.pairs[3].against == ("ttx changed between its runs: tool.dirty",)
    assert "it was measured by 2 versions of ttx; both runs of a pair by one" in report.notes


def test_pairs_that_another_version_of_ttx_measured_count_and_it_is_said(book: Book) -> None:
    swapped(book, NOISE[:3], FASTER[:3], b_this=OTHER, plan={"pairs": 4})
    for side, this in (("A", arm()), ("B", OTHER)):
        book.add(place(3, side), 1.0, cards=swap_cards(3, side), this=this, dirty="d" * 64)  # type: ignore[arg-type]
    report = report_of(book)
    assert report.counted == 4
    assert "it was measured by 2 versions of ttx; both runs of a pair by one" in report.notes


def test_a_busy_host_is_told(book: Book) -> None:
    busy = replace(HOST, state=HostState(load=(2.5, 1.0, 1.0)))
    swapped(book, NOISE, FASTER, host=replace(HOST, state=HostState(load=(1.9,))), b_host=busy)
    assert "the host was busy when 4 of 8 runs began: more load than processors" in report_of(book).notes


def test_drift_is_told_beside_the_effects(book: Book) -> None:
    swapped(book, [1.01**pair for pair in range(4)], [2 * 1.01**pair for pair in range(4)], b_this=OTHER)
    assert report_of(book).metrics[0].drift == pytest.approx(0.01)


def test_other_pins_may_have_other_images(book: Book) -> None:
    swapped(book, NOISE, FASTER, b_image="sha256:2", b_asks={"pin_digest": "e" * 64})
    report = report_of(book)
    assert report.verdict == "better"


@pytest.mark.parametrize(
    ("a", "b", "turns", "why"),
    [
        ("c0", "c0", False, "the runs of pair 3 did not have one card each"),
        ("c2", "c0", False, "its runs had 3 cards, and change places on 2"),
        ("c0", "c1", True, "the runs of pair 3 did not have the same cards"),
    ],
)
def test_cards_are_those_of_the_plan(book: Book, a: str, b: str, turns: bool, why: str) -> None:  # noqa: FBT001
    for pair in range(4):
        for side in ("A", "B"):
            planned = ("c0",) if turns else swap_cards(pair, side)  # type: ignore[arg-type]
            odd = {"A": (a,), "B": (b,)}[side]
            book.add(place(pair, side, turns=turns), NOISE[pair], cards=odd if pair == 3 else planned)  # type: ignore[arg-type]
    report = report_of(book)
    assert report.verdict == "invalid"
    assert why in report.reasons


@pytest.mark.parametrize("side", ["A", "B"])
def test_cards_that_were_not_asked_for_are_invalid(book: Book, side: str) -> None:
    for pair in range(4):
        for each in ("A", "B"):
            asks = {"cards": ("c2",)} if each == side else {}
            book.add(place(pair, each), 1.0, cards=swap_cards(pair, each), asks=asks)  # type: ignore[arg-type]
    report = report_of(book)
    assert report.verdict == "invalid"
    assert report.reasons[0] == "a run of pair 0 had other cards than it asked for"


def test_runs_of_two_plans_are_no_ab(book: Book) -> None:
    swapped(book, NOISE, FASTER)
    book.add(place(3, "A", pairs=6, attempt=1), 1.0, cards=("c0",))
    assert "its runs do not have one plan" in report_of(book).reasons


# Outputs


def test_other_answers_forbid_a_verdict_of_speed(book: Book) -> None:
    swapped(book, NOISE, FASTER, b_this=OTHER, b_outputs={**ANSWERS, "count": "one two four"})
    report = report_of(book)
    assert (report.verdict, report.metrics, report.exit_code) == ("invalid", (), Exit.NOT_QUOTABLE)
    assert report.reasons == ("4 of 8 answers of B are not those of A",)
    other = report.outputs.others[0]
    assert (other.prompt, other.first, other.agreement) == ("count", 8, pytest.approx(8 / 13))


def test_other_answers_end_it_at_the_first_pair(book: Book) -> None:
    book.add(place(0, "A"), 1.0, cards=("c0",))
    book.add(place(0, "B"), 1.0, cards=("c1",), outputs={})
    assert report_of(book).verdict == "invalid"


def test_allowed_they_are_told_and_measured(book: Book) -> None:
    swapped(
        book, NOISE, FASTER, b_this=OTHER, b_outputs={**ANSWERS, "count": "one two four"}, plan={"other_outputs": True}
    )
    report = report_of(book)
    assert report.verdict == "better"
    assert "of 8 answers 4 are the same; they agree up to 80.8% of their length on average" in report.notes


def test_no_answers_at_all_show_nothing(book: Book) -> None:
    swapped(book, NOISE, FASTER, b_this=OTHER, outputs={})
    report = report_of(book)
    assert report.verdict == "invalid"
    assert report.reasons == ("the suite recorded no answers, so nothing shows that both arms answer the same",)


def test_an_arm_that_answers_otherwise_each_time_is_called_so(book: Book) -> None:
    for pair in range(4):
        for side in ("A", "B"):
            said = {"count": f"{side}{pair}"}
            book.add(place(pair, side), 1.0, cards=swap_cards(pair, side), outputs=said)  # type: ignore[arg-type]
    report = report_of(book)
    assert report.reasons == ("4 of 4 answers of B are not those of A; A's own answers differ from boot to boot",)


# Notes


def test_arms_that_differ_in_their_port_alone_are_one(book: Book) -> None:
    swapped(book, NOISE, FASTER, b_this=arm("prod-b", port=8001), b_asks={"argv": ("other",)})
    report = report_of(book)
    assert report.one_arm
    assert [each.key for each in report.declared] == ["arm.engine.port"]
    assert any("A and B are one arm" in note for note in report.notes)


def test_another_mesh_is_another_arm(book: Book) -> None:
    other = {**arm("wide"), "cards": {"count": 1, "ids": [], "mesh": "P300"}}
    swapped(book, NOISE, FASTER, b_this=other)
    assert not report_of(book).one_arm


def test_no_runs_are_no_ab() -> None:
    with pytest.raises(ValueError, match="at least one"):
        judge([])
