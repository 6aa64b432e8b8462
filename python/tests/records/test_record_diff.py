"""What differs between two runs."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from records_kit import CELL, HOST, MEASURED, OBSERVED, asked, close_line, open_line, true_asked

from ttstack.records.diff import RunDiff, diff
from ttstack.records.log import nobody, read_stream
from ttstack.records.statistics import summarise
from ttstack.records.store import encode
from ttstack.records.types import MeasuredCheck

if TYPE_CHECKING:
    from ttstack.records.log import RunRecord
    from ttstack.records.types import Cell, Json, Measured

NOTHING = RunDiff((), (), (), (), (), (), ())


def _run(first: dict[str, Json], last: dict[str, Json] | None = None) -> RunRecord:
    data = encode(first) + (encode(last) if last else b"")
    return read_stream(io.BytesIO(data), len(data), nobody).runs[0]


def _cell(name: str, *values: float, **change: object) -> Cell:
    cell = replace(CELL, name=name, values={"ttft_s": values}, stats={"ttft_s": summarise(values)})
    return replace(cell, **change)  # type: ignore[arg-type] # fields of a cell


def _measured(measured: Measured) -> RunRecord:
    return _run(open_line(), close_line(measured=measured))


def test_the_same_twice_differs_in_nothing_whenever_it_ran() -> None:
    state = replace(HOST, state=None)
    seen = replace(OBSERVED, engine_pid=99, log="/elsewhere", cache_work=None)
    a = _run(open_line("r-1"), close_line("r-1"))
    found = diff(a, _run(open_line("r-2", host=state), close_line("r-2", observed=seen)))
    values = MEASURED.cells[0].values["ttft_s"]
    assert [(effect.percent, effect.n) for effect in found.cells] == [(0.0, (len(values), len(values)))]
    assert replace(found, cells=()) == NOTHING


def test_what_was_asked_differs_by_path() -> None:
    a, b = true_asked(), replace(true_asked(), suite="soak", cards=("x",))
    engine = {**b.arm["engine"], "port": 1}  # type: ignore[dict-item] # a table
    b = replace(b, arm={**b.arm, "engine": engine, "new": [{"a": 1}]})
    found = diff(_run(open_line(asked=a)), _run(open_line(asked=b)))
    assert {entry.path: (entry.a, entry.b) for entry in found.asked} == {
        "arm.engine.port": (18000, 1),
        "arm.new": ("(not there)", [{"a": 1}]),
        "cards": ([], ["x"]),
        "suite": ("smoke", "soak"),
    }


def test_host_code_and_what_was_observed_differ_by_path() -> None:
    a = _run(open_line(), close_line())
    card = replace(OBSERVED.cards[0], firmware="19.0.0.0")
    b = _run(
        open_line(host=replace(HOST, kernel="6.13.0")),
        close_line(observed=replace(OBSERVED, cards=(card,), served_root="/other", banners=())),
    )
    found = diff(a, b)
    assert [(entry.path, entry.b) for entry in found.around] == [("host.kernel", "6.13.0")]
    assert {entry.path: entry.b for entry in found.observed} == {
        "observed.cards[0].firmware": "19.0.0.0",
        "observed.banners": [],
        "observed.served_root": "/other",
    }


def test_effects_are_told_for_cells_of_one_name_and_one_shape() -> None:
    other_shape = {**CELL.shape, "concurrency": 2}
    a = _measured(replace(MEASURED, cells=(_cell("x", 1.0, 2.0, 3.0), _cell("only a", 1.0), _cell("y", 1.0))))
    b = _measured(replace(MEASURED, cells=(_cell("x", 2.5, 2.5), _cell("y", 1.0, shape=other_shape))))
    found = diff(a, b)
    assert [(e.cell, e.value, e.n, e.median) for e in found.cells] == [("x", "ttft_s", (3, 2), (2.0, 2.5))]
    assert found.cells[0].percent == pytest.approx(25.0)
    assert (found.only_a, found.only_b) == (("only a", "y"), ("y",))


def test_no_effect_is_told_of_void_cells_and_over_nothing() -> None:
    void = _cell("x", 2.0, reasons=("the client was busy",))
    a = _measured(replace(MEASURED, cells=(_cell("x", 1.0), _cell("zero", 0.0))))
    b = _measured(replace(MEASURED, cells=(void, _cell("zero", 1.0))))
    effects = {effect.cell: effect for effect in diff(a, b).cells}
    assert (effects["x"].percent, effects["x"].reasons) == (None, ("B: the client was busy",))
    assert effects["zero"].percent is None


def test_two_cells_of_one_kind_are_compared_in_their_order() -> None:
    a = _measured(replace(MEASURED, cells=(_cell("x", 1.0), _cell("x", 2.0))))
    b = _measured(replace(MEASURED, cells=(_cell("x", 2.0), _cell("x", 3.0))))
    assert [effect.percent for effect in diff(a, b).cells] == [pytest.approx(100.0), pytest.approx(50.0)]


def test_answers_checks_and_settings_differ_by_name() -> None:
    a = _measured(replace(MEASURED, outputs={"p": "1", "q": "2"}))
    worse = replace(MEASURED, outputs={"p": "1", "q": "3"}, checks=(MeasuredCheck("long_prompt", ok=False),), void=1)
    found = diff(a, _measured(replace(worse, settings={"seed": 8})))
    assert {entry.path: (entry.a, entry.b) for entry in found.measured} == {
        "checks.long_prompt": (True, False),
        "settings.seed": (7, 8),
        "outputs.q": ("2", "3"),
        "void": (0, 1),
    }


def test_a_run_that_was_not_closed_has_nothing_observed() -> None:
    found = diff(_run(open_line(), close_line()), _run(open_line(asked=asked())))
    assert [entry.b for entry in found.observed] == [None]
    assert (found.cells, found.only_a) == ((), ("prefill 1024",))
