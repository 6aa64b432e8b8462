"""Each rule of ``ttx records verify`` holds for what ttx writes, and names what breaks it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records_kit import CELL, MEASURED, SHELF, close_line, open_line, true_asked, written

from ttstack.arm.shelf import arm_names
from ttstack.records.again import UnknownFormError, cache_key_of, digests_of
from ttstack.records.build import jsonable
from ttstack.records.seal import seal
from ttstack.records.statistics import summarise
from ttstack.records.verify import RULES, verify_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.records.types import Cell
    from ttstack.records.verify import Verified


def _verify(*lines: bytes) -> Verified:
    data = b"".join(lines)
    return verify_stream(io.BytesIO(data), len(data))


def _sealed(line: dict[str, Any]) -> bytes:
    """Spell a line as a writer would that checks nothing."""
    plain = {name: value for name, value in line.items() if name != "sum"}
    return seal(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())


def _pair() -> tuple[dict[str, Any], dict[str, Any]]:
    return written(open_line(asked=true_asked())), written(close_line())


def test_what_ttx_writes_holds() -> None:
    first, last = _pair()
    found = _verify(_sealed(first), _sealed(last))
    assert (found.lines, found.findings, found.unknown, found.unsealed) == (2, (), (), 0)


def _stat(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:  # noqa: ANN401 - any value
    def change(_first: dict[str, Any], last: dict[str, Any]) -> None:
        last["measured"]["cells"][0]["stats"]["ttft_s"][name] = value

    return change


CHANGES: list[tuple[str, Callable[[dict[str, Any], dict[str, Any]], object]]] = [
    ("arm_digest", lambda first, _: first["asked"].update(arm_digest="0" * 64)),
    ("arm_digest", lambda first, _: first["asked"]["arm"]["engine"].update(port=1)),
    ("arm_digest", lambda first, _: first["asked"]["arm"]["env"].update(A="1")),
    ("pin_digest", lambda first, _: first["asked"].update(pin_digest="0" * 64)),
    ("pin_digest", lambda first, _: first["asked"]["pin"].update(tt_metal="0" * 40)),
    ("model_digest", lambda first, _: first["asked"].update(model_digest="0" * 64)),
    ("model_digest", lambda first, _: first["asked"]["model"].update(revision="other")),
    ("cache_key", lambda first, _: first["asked"]["cache"].update(key="0" * 16)),
    ("cache_key", lambda first, _: first["asked"]["cache"]["inputs"].update(dtype="bfloat16")),
    ("verdict", lambda _, last: last["identity"].update(verdict="unknown")),
    ("ok", lambda _, last: last["measured"].update(ok=False)),
    ("stats", lambda _, last: last["measured"]["cells"][0]["values"]["ttft_s"].append(0.75)),
    ("stats", lambda _, last: last["measured"]["cells"][0]["values"].update(other_s=[1.0])),
    ("stats", lambda _, last: last["measured"]["cells"][0]["values"].clear()),
    ("stats", lambda _, last: last["measured"]["cells"][0]["stats"].clear()),
    ("stats", _stat("n", 3)),
    ("stats", _stat("median", 0.3750001)),
    ("stats", _stat("mean", 0.4)),
    ("stats", _stat("sd", 0.2)),
    ("stats", _stat("sd", None)),
    ("stats", _stat("low", 0.2)),
    ("stats", _stat("high", 0.6)),
    ("stats", _stat("percentiles", {"p90": 0.5})),
    ("voids", lambda _, last: last["measured"]["cells"][0].update(voids={"no_usage": 3})),
    ("voids", lambda _, last: last["measured"].update(requests=1, void=2)),
    ("quotable", lambda _, last: last.update(outcome="failed")),
    ("quotable", lambda _, last: last.update(quotable=False, quotable_reasons=["it rained"])),
    ("quotable", lambda _, last: last.update(quotable=False)),
    ("quotable", lambda _, last: last["measured"]["cells"][0].update(reasons=["the client was busy"])),
    ("quotable", lambda _, last: last.update(outcome="failed", quotable=False, quotable_reasons=["it rained"])),
]


@pytest.mark.parametrize(("rule", "change"), CHANGES)
def test_a_line_that_says_what_does_not_follow_is_named(
    rule: str, change: Callable[[dict[str, Any], dict[str, Any]], object]
) -> None:
    pair = _pair()
    change(*pair)
    found = _verify(*map(_sealed, pair)).findings
    assert rule in {finding.rule for finding in found}
    line = 1 if rule in {"arm_digest", "pin_digest", "model_digest", "cache_key"} else 2
    assert {(finding.line, finding.run) for finding in found} == {(line, "r-1")}
    if rule not in {"voids", "stats"}:
        assert {finding.rule for finding in found} == {rule}


def test_lines_that_are_not_whole_are_named() -> None:
    first, last = map(_sealed, _pair())
    found = _verify(first[:-100] + b"\n", b"\n", b'{"schema":2,"run":"x"}\n', b"[]\n", last)
    assert [(f.line, f.rule, f.message.partition(":")[0]) for f in found.findings] == [
        (1, "whole", "torn"),
        (3, "whole", "newer"),
        (4, "whole", "invalid"),
        (5, "opened", "no line opens this run"),
    ]


def test_arms_of_several_kinds_are_each_computed() -> None:
    asked = [true_asked(name) for name in arm_names(SHELF)]
    lines = [written(open_line(f"r-{at}", asked=each)) for at, each in enumerate(asked)]
    lines[-1]["asked"]["arm_digest"] = lines[0]["asked"]["arm_digest"]
    found = _verify(*map(_sealed, lines))
    assert [(f.line, f.rule) for f in found.findings] == [(len(lines), "arm_digest")]
    assert len(lines) > 1


def test_second_lines_and_ids_are_named() -> None:
    first, last = _pair()
    other = written(open_line("r-2", asked=true_asked())) | {"id": last["id"]}
    found = _verify(*map(_sealed, (first, last, last, first, other)))
    rules = [(finding.line, finding.rule) for finding in found.findings]
    assert rules == [(3, "once"), (3, "once"), (4, "once"), (4, "once"), (5, "once")]


def test_a_close_before_its_opening_is_named() -> None:
    first, last = map(_sealed, _pair())
    assert [(f.line, f.rule) for f in _verify(last, first).findings] == [(1, "opened")]


def test_a_line_that_was_changed_is_named_and_one_without_a_sum_is_counted() -> None:
    first, last = _pair()
    changed = _sealed(first).replace(b'"cpu_count":2', b'"cpu_count":3')
    assert [(f.line, f.rule) for f in _verify(changed, _sealed(last)).findings] == [(1, "sum")]
    del last["sum"]
    found = _verify(_sealed(first), json.dumps(last).encode() + b"\n")
    assert (found.findings, found.unsealed) == ((), 1)


def test_every_rule_has_a_test() -> None:
    assert {rule for rule, _ in CHANGES} | {"whole", "sum", "once", "opened"} == set(RULES)


def test_what_this_version_cannot_compute_is_no_fault_and_is_told() -> None:
    first, last = _pair()
    first["asked"]["arm"]["engine"]["of_a_later_version"] = 1
    found = _verify(_sealed(first), _sealed(last))
    assert found.findings == ()
    assert ["of_a_later_version" in entry.message for entry in found.unknown] == [True]
    del first["asked"]["arm"]["engine"]
    assert "no engine" in _verify(_sealed(first)).unknown[0].message


@pytest.mark.parametrize("name", ["", "arm", "pin", "model", "engine", "cards", "expect"])
@given(junk=st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)))
@settings(deadline=None)
def test_digests_of_anything_are_computed_or_not_known(name: str, junk: object) -> None:
    first: Any = jsonable(true_asked())
    node = first["arm"] if name in {"engine", "cards", "expect"} else first
    if name:
        node[name] = junk
    try:
        digests_of(first)
    except UnknownFormError:
        assert name


@pytest.mark.parametrize("name", arm_names(SHELF))
def test_the_arms_of_the_project_have_the_digests_that_are_computed_again(name: str) -> None:
    table = json.loads(json.dumps(jsonable(true_asked(name))))
    assert digests_of(table) == {key: table[key] for key in ("arm_digest", "pin_digest", "model_digest")}
    assert table["cache"]["key"] == cache_key_of(table["cache"]["inputs"])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60))
@settings(deadline=None)
def test_statistics_that_went_through_json_hold(values: list[float]) -> None:
    cell: Cell = replace(CELL, values={"x_s": tuple(values)}, stats={"x_s": summarise(values)})
    line = written(close_line(measured=replace(MEASURED, cells=(cell,))))
    assert [f.rule for f in _verify(_sealed(line)).findings] == ["opened"]
