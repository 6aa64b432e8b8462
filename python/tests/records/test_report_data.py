from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records_kit import OBSERVED
from report_kit import cell, history, load, log_of, report_of, run_lines, smoke, sweep

from ttstack.records.report.gather import gather
from ttstack.records.report.results import spread
from ttstack.records.report.scale import close_scale, scale
from ttstack.records.report.words import days, heading, moment, number, percent, text, unit_of
from ttstack.records.types import Measured, MeasuredCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.records.report.types import Results, Spread
    from ttstack.records.types import Json

CHECKED = (MeasuredCheck("c", ok=True),)
FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def only(results: Sequence[Results]) -> Results:
    (result,) = results
    return result


def whole(results: Results, value: str) -> Spread:
    assert results.whole is not None
    return results.whole.values[value]


def test_of_one_boot_the_spread_is_of_its_samples() -> None:
    found = whole(only(report_of(run_lines(0, "prod", smoke(3.0, 1.0, 2.5))).results), "request_s")
    assert (found.median, found.low, found.high, found.n, found.boots) == (2.5, 1.0, 3.0, 3, 1)


def test_of_several_boots_it_is_of_their_medians_alone() -> None:
    lines = run_lines(0, "prod", smoke(1.0, 2.0, 9.0)) + run_lines(1, "prod", smoke(4.0, 4.0, 4.0, 0.5))
    result = only(report_of(lines).results)
    found = whole(result, "request_s")
    assert (found.median, found.low, found.high, found.n, found.boots) == (3.0, 2.0, 4.0, 7, 2)
    assert (result.source.boots, result.source.left_out, result.source.quotable) == (2, 0, True)


def test_boots_that_may_not_be_quoted_are_left_out_where_others_may() -> None:
    lines = run_lines(0, "prod", smoke(1.0)) + run_lines(1, "prod", smoke(100.0), identity=None)
    result = only(report_of(lines).results)
    assert whole(result, "request_s").median == 1.0
    assert (result.source.boots, result.source.left_out, result.source.against) == (1, 1, ())


def test_where_there_are_no_others_they_stand_there_with_the_reasons() -> None:
    lines = run_lines(0, "prod", smoke(1.0), identity=None) + run_lines(1, "prod", smoke(3.0), outcome="failed")
    result = only(report_of(lines).results)
    assert whole(result, "request_s").median == 2.0
    assert result.source.against == ("identity was not checked", "the outcome is failed")


def test_many_reasons_are_counted() -> None:
    failed = tuple(MeasuredCheck(f"c{at}", ok=False) for at in range(12))
    result = only(report_of(run_lines(0, "prod", replace(smoke(1.0), checks=failed))).results)
    assert result.source.against[7:] == ("suite smoke: c7 failed", "and 4 more reasons")


def test_what_asked_for_something_else_is_apart_and_has_a_name_of_its_own() -> None:
    lines = run_lines(0, "prod", smoke(1.0)) + run_lines(1, "prod", smoke(2.0), pin="next")
    lines += run_lines(2, "prod", smoke(3.0), simulated=True) + run_lines(3, "other", smoke(4.0))
    results = report_of(lines).results
    labels = [result.source.label for result in results]
    assert labels[:2] == ["other", "prod (simulated)"]
    assert [whole(result, "request_s").median for result in results] == [4.0, 3.0, 2.0, 1.0]
    assert len(set(labels)) == 4
    assert [label.startswith("prod @ pin ") for label in labels[2:]] == [True, True]


def test_hosts_are_apart_where_there_are_several() -> None:
    lines = run_lines(0, "prod", smoke(1.0)) + run_lines(1, "prod", smoke(2.0), hostname="other")
    assert [result.source.label for result in report_of(lines).results] == ["prod on other", "prod on cardhost"]


def test_places_along_a_line_have_no_middle() -> None:
    measured = Measured("s", CHECKED, {"prefill_residual_s": (1.0, -1.0), "x_at_s": (1.0,), "x_s": (2.0,)}, requests=1)
    result = only(report_of(run_lines(0, "prod", measured)).results)
    assert result.whole is not None
    assert list(result.whole.values) == ["x_s"]


def test_a_second_cell_of_one_kind_is_no_second_boot() -> None:
    twin = cell("c", {"concurrency": 1}, {"ttft_s": (1.0,)})
    measured = Measured("s", CHECKED, requests=2, cells=(twin, replace(twin, values={"ttft_s": (5.0,)})))
    rows = only(report_of(run_lines(0, "prod", measured)).results).cells
    assert [(row.values["ttft_s"].median, row.values["ttft_s"].boots) for row in rows] == [(1.0, 1), (5.0, 1)]


def test_curves_are_of_what_differs_in_one_thing_alone() -> None:
    report = report_of(run_lines(0, "prod", load(random.Random(1))))  # noqa: S311
    assert report.sweeps == ()
    assert [figure.value for figure in report.loads] == ["tg_ms_per_token", "tokens_per_s", "ttft_s", "goodput_share"]
    # The cell of B=1 is measured in another way than the first of the load.
    assert report.loads[0].places == (1, 2, 4, 8, 16, 32)
    assert report.loads[0].shape == "prompt tokens 1024, output tokens 128, pattern closed"


def test_what_is_simulated_is_never_in_one_figure_with_what_is_not() -> None:
    noise = random.Random(1)  # noqa: S311
    report = report_of(run_lines(0, "prod", sweep(noise)) + run_lines(1, "sim", sweep(noise), simulated=True))
    assert [figure.simulated for figure in report.sweeps] == [False] * 3 + [True] * 3
    assert all(curve.source.simulated == figure.simulated for figure in report.sweeps for curve in figure.curves)


def test_a_figure_has_no_more_curves_than_there_are_looks() -> None:
    noise = random.Random(1)  # noqa: S311
    report = report_of([line for at in range(10) for line in run_lines(at, f"arm-{at}", sweep(noise))])
    assert [[curve.source.label for curve in figure.curves] for figure in report.sweeps] == [
        [f"arm-{at}" for at in range(9, 1, -1)]
    ] * 3


@pytest.mark.parametrize("x", [0, -1, True, "1", None])
def test_a_place_that_is_no_number_above_0_is_not_drawn(x: Json) -> None:
    cells = tuple(cell(f"c{at}", {"concurrency": at}, {"ttft_s": (1.0,)}) for at in (x, 4))
    assert report_of(run_lines(0, "prod", Measured("s", CHECKED, requests=2, cells=cells))).loads == ()


def test_a_trend_has_every_run_and_marks_what_was_changed() -> None:
    lines = []
    for at, change in enumerate(
        (
            {},
            {},
            {"pin": "next"},
            {"pin": "next", "overlays": [{"source": "/o", "target": "t"}]},
            {"pin": "next", "overlays": [{"source": "/o", "target": "t"}], "max_num_seqs": 8},
        )
    ):
        lines += run_lines(at, "prod", smoke(1.0 + at), **change)  # type: ignore[arg-type]
    card = replace(OBSERVED.cards[0], firmware="19.14.0.0")
    lines += run_lines(
        5, "prod", smoke(7.0), pin="next", overlays=[{"source": "/o", "target": "t"}], max_num_seqs=8,
        observed=replace(OBSERVED, cards=(card,)),
    )  # fmt: skip
    (trend,) = report_of(lines).trends
    assert [point.value for point in trend.points] == [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]
    assert [change.kinds for change in trend.changes] == [("pin",), ("overlay", "arm"), ("arm",), ("card",)]
    assert "pin.tt_metal: current-commit \N{RIGHTWARDS ARROW} next-commit" in trend.changes[0].text
    assert '[{"source": "/o", "target": "t"}]' in trend.changes[1].text
    assert trend.changes[2].text == "arm.engine.args.max-num-seqs: 32 \N{RIGHTWARDS ARROW} 8"
    assert "19.14.0.0" in trend.changes[3].text


def test_a_change_that_only_the_digest_tells_is_told_by_it() -> None:
    lines = run_lines(0, "prod", smoke(1.0)) + run_lines(1, "prod", smoke(1.0), arm_digest="e" * 64)
    (trend,) = report_of(lines).trends
    assert trend.changes[0].kinds == ("arm",)
    assert f"\N{RIGHTWARDS ARROW} {'e' * 12}" in trend.changes[0].text
    lines = run_lines(0, "prod", smoke(1.0)) + run_lines(1, "prod", smoke(1.0), model_digest="e" * 64)
    assert [change.kinds for change in report_of(lines).trends[0].changes] == [("model",)]


def test_a_trend_says_which_runs_may_not_be_quoted() -> None:
    lines = run_lines(0, "prod", smoke(1.0)) + run_lines(1, "prod", smoke(2.0), identity=None)
    (trend,) = report_of(lines).trends
    assert [point.against for point in trend.points] == [(), ("identity was not checked",)]


def test_a_trend_follows_the_first_cell_that_has_the_value() -> None:
    noise = random.Random(1)  # noqa: S311
    trends = report_of([line for at in range(2) for line in run_lines(at, "prod", load(noise))]).trends
    assert [(trend.cell, trend.value) for trend in trends] == [("b1", "tg_ms_per_token"), ("b1", "ttft_s")]


def test_a_day_that_no_calendar_has_has_no_place_in_a_trend() -> None:
    lines = [line for at in range(3) for line in run_lines(at, "prod", smoke(1.0))]
    lines[0] = lines[0].replace(b'"time":"2026-01-05', b'"time":"2026-01-99')
    (trend,) = report_of(lines).trends
    assert len(trend.points) == 2


def test_lists_of_runs() -> None:
    report = report_of(history())
    assert dict(report.counts.outcomes) == {"ok": 16, "refused": 1, "failed": 1}
    assert (report.counts.runs, report.counts.measured, report.counts.quotable, report.counts.simulated) == (
        18,
        16,
        14,
        1,
    )
    assert [(row.arm, row.outcome, row.reasons[0]) for row in report.stopped] == [
        ("trial", "failed", "boot_failed"),
        ("prod", "refused", "slot_busy"),
    ]
    assert [(cell.arm, cell.cell, cell.reasons, dict(cell.voids)) for cell in report.void_cells] == [
        ("trial", "prompt 8192", ("1 of 3 requests are void: short",), {"short": 1}),
        ("prod", "prompt 4096", ("1 of 3 requests are void: short",), {"short": 1}),
    ]
    assert [row.arm for row in report.not_quotable] == ["trial", "prod"]
    assert len(report.boots) == 12
    assert report.boots[0].of("boot") is not None
    assert report.boots[0].of("never") is None


def test_a_run_that_was_never_closed_is_told() -> None:
    report = report_of(run_lines(0, "prod", None)[:1])
    assert report.stopped[0].reasons == ("it was never closed: whoever ran it is gone",)
    assert (report.boots, report.results) == ((), ())


def test_a_server_without_an_arm_goes_by_its_address() -> None:
    lines = run_lines(0, "", smoke(1.0), url="http://127.0.0.1:8000")
    assert only(report_of(lines).results).source.label == "http://127.0.0.1:8000"


def test_a_report_of_nothing_is_none() -> None:
    with pytest.raises(ValueError, match="at least one"):
        gather(log_of([]).runs, title="t")


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_an_axis_holds_all_values_and_has_few_marks(values: list[float]) -> None:
    for made in (scale(values), close_scale(values)):
        low, high = made.range
        slack = (high - low) * 1e-6
        assert all(low - slack <= made.place(value) <= high + slack for value in values)
        assert 2 <= len(made.marks) <= 16
        assert list(made.marks) == sorted(made.marks)


def test_an_axis_begins_at_0_unless_values_are_far_apart() -> None:
    assert scale([31.0, 47.0]).low == 0
    wide = scale([0.2, 14.0])
    assert (wide.logarithmic, wide.marks) == (True, (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0))
    assert not scale([0.0, 14.0]).logarithmic


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (1.0, "1"), (0.08104, "0.08104"), (31.2345, "31.23"), (1234.5, "1234"), (123456.0, "123456"),
     (-2.5, "-2.5"), (1e-7, "1.000e-07"), (2e9, "2.000e+09"), (9.99996, "10")],
)  # fmt: skip
def test_numbers(value: float, said: str) -> None:
    assert number(value) == said


@pytest.mark.parametrize(
    ("name", "said"),
    [("ttft_s", ("TTFT", "s")), ("tg_ms_per_token", ("Time per token (TG)", "ms/token")),
     ("pp_tokens_per_s", ("Prefill (PP)", "tokens/s")), ("tokens_per_s", ("Throughput", "tokens/s")),
     ("goodput_requests_per_s", ("Goodput", "requests/s")), ("largest_gap_s", ("largest gap", "s")),
     ("odd", ("odd", ""))],
)  # fmt: skip
def test_names_of_values(name: str, said: tuple[str, str]) -> None:
    assert unit_of(name) == said


def test_other_words() -> None:
    assert heading("odd") == "odd"
    assert percent(-0.031) == "\N{MINUS SIGN}3.10 %"
    assert moment("2026-01-31T23:59:59.123Z") == "2026-01-31 23:59"
    assert text("a\u202eb\n\x1b[1m") == "a\\u202eb\\n\\x1b[1m"
    assert days("1970-01-02T12:00:00.000Z") == 1.5
    assert spread([(1.0, 3.0)]).median == 2.0
