from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records_kit import AB, CELL, HOST, IDENTITY, MEASURED, OBSERVED, OWNER, asked, close_line, open_line, written

from ttstack.records import parse
from ttstack.records.build import jsonable, new_run_id, timestamp
from ttstack.records.errors import RecordsError
from ttstack.records.quotable import reasons_against
from ttstack.records.schema import schema_document, violation
from ttstack.records.store import encode
from ttstack.records.types import Identity, IdentityCheck, Measured, MeasuredCheck


def _every_object(node: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any part of a document
    if isinstance(node, dict):
        inner = [found for entry in node.values() for found in _every_object(entry)]
        return [node, *inner] if node.get("type") == "object" and "properties" in node else inner
    return [found for entry in node for found in _every_object(entry)] if isinstance(node, list) else []


def _paths(node: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:  # noqa: ANN401 - as above
    """Every key of a line, at every depth, except inside free tables."""
    if (
        at
        and at[-1]
        in {"arm", "pin", "model", "inputs", "values", "shape", "stats", "server", "voids", "settings", "outputs"}
        and isinstance(node, dict)
    ):
        return []
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found = [(*at, key) for key, _ in entries] if isinstance(node, dict) else []
    return found + [path for key, entry in entries for path in _paths(entry, (*at, key))]


def _without(line: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    changed = deepcopy(line)
    node: Any = changed
    for key in path[:-1]:
        node = node[key]
    del node[path[-1]]
    return changed


def test_both_lines_are_of_the_schema() -> None:
    assert violation(written(open_line()), strict=True) is None
    assert violation(written(close_line()), strict=True) is None
    bare = close_line(
        outcome="refused", reason="busy", exit_code=3, phases=(), observed=None, identity=None, measured=None
    )
    assert violation(written(bare), strict=True) is None


def test_every_field_is_required_and_no_other_is_written() -> None:
    for line in (written(open_line(ab=AB)), written(close_line())):
        paths = _paths(line)
        assert len(paths) > 25
        for path in paths:
            assert violation(_without(line, path), strict=True), path
        assert violation({**line, "extra": 1}, strict=True)
        assert violation({**line, "extra": 1}, strict=False) is None


@pytest.mark.parametrize("line", [written(open_line(ab=AB)), written(close_line())], ids=["open", "close"])
def test_a_line_of_before_a_field_was_added_is_read_with_its_default(line: dict[str, Any]) -> None:
    added = [path for path in _paths(line) if violation(_without(line, path), strict=False) is None]
    names = {path[-1] for path in added}
    assert names >= ({"ab", "sum", "state", "commit"} if line["kind"] == "open" else {"start", "inner", "cells", "sum"})
    for path in added:
        old = _without(line, path)
        assert violation(old, strict=True), path
        read: Any = (parse.opened if old["kind"] == "open" else parse.closed)(old)
        for key in path[:-1]:
            read = read[key] if isinstance(key, int) else getattr(read, key)
        if path[-1] != "sum":
            default = next(field for field in fields(read) if field.name == path[-1])
            made = default.default_factory() if default.default is MISSING else default.default
            assert getattr(read, str(path[-1])) == made, path


def test_a_void_cell_is_not_quotable() -> None:
    void = replace(CELL, reasons=("the client was busy",))
    line = close_line(measured=replace(MEASURED, cells=(CELL, void)))
    assert line["quotable_reasons"] == ["suite smoke: cell prefill 1024: the client was busy"]


def test_the_schema_names_every_field_of_its_objects_as_required() -> None:
    objects = [
        node
        for node in _every_object(schema_document())
        if "kind" not in node["properties"] or "run" in node["properties"]
    ]
    assert len(objects) > 14
    for node in objects:
        assert set(node["required"]) == set(node["properties"])
        assert node["additionalProperties"] is False


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", "a b"),
        ("run", ""),
        ("time", "2026-01-01T00:00:00Z"),
        ("time", "2026-01-01T00:00:00.000+01:00"),
        ("outcome", "fine"),
        ("reason", "No Space"),
        ("exit_code", -1),
        ("exit_code", True),
        ("schema", 2),
        ("kind", "else"),
        ("quotable", "yes"),
        ("measured", {"suite": "smoke"}),
    ],
)
def test_wrong_values_are_refused(field: str, value: object) -> None:
    with pytest.raises(RecordsError):
        encode({**close_line(), field: value})


def test_lines_are_data_again() -> None:
    first, last = parse.opened(open_line()), parse.closed(close_line())
    assert (first.asked, first.owner, first.host) == (asked(), OWNER, HOST)
    assert (last.identity, last.measured, last.observed) == (IDENTITY, MEASURED, OBSERVED)
    assert jsonable(first) == {key: value for key, value in open_line().items() if key not in {"schema", "kind"}} | {
        "id": first.id,
        "time": first.time,
    }


def test_quotable_is_computed_and_cannot_be_set() -> None:
    assert close_line()["quotable"] is True
    failed = close_line(outcome="failed", exit_code=1)
    assert failed["quotable"] is False
    with pytest.raises(RecordsError, match="computed"):
        encode({**failed, "quotable": True, "quotable_reasons": []})
    with pytest.raises(RecordsError, match="computed"):
        encode({**close_line(), "quotable": False, "quotable_reasons": ["I do not like it"]})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"outcome": "interrupted"}, "the outcome is interrupted"),
        ({"identity": None}, "identity was not checked"),
        ({"identity": Identity(())}, "identity was not checked"),
        ({"identity": Identity((IdentityCheck("banner", ok=False),))}, "identity: banner is not as asked"),
        ({"identity": Identity((IdentityCheck("cache", ok=None),))}, "identity: cache could not be told"),
        ({"measured": None}, "nothing was measured"),
        ({"measured": Measured("smoke")}, "nothing was measured"),
        ({"measured": Measured("smoke", (MeasuredCheck("stop", ok=False),))}, "suite smoke: stop failed"),
        (
            {"measured": Measured("smoke", (MeasuredCheck("stop", ok=True),), requests=9, void=2)},
            "suite smoke: 2 of 9 requests are void",
        ),
    ],
)
def test_what_forbids_quoting(change: dict[str, Any], reason: str) -> None:
    given_ = {"outcome": "ok", "identity": IDENTITY, "measured": MEASURED, **change}
    assert reasons_against(**given_) == (reason,)


def test_identity_follows_from_its_checks() -> None:
    yes, no, unknown = (IdentityCheck("x", ok=ok) for ok in (True, False, None))
    assert Identity((yes, yes)).verdict == "confirmed"
    assert Identity((yes, unknown)).verdict == "unknown"
    assert Identity((unknown, no)).verdict == "refused"
    assert Identity(()).verdict == "unknown"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_arm_survives_and_stays_one_line(arm: dict[str, Any]) -> None:
    data = encode(open_line(asked=asked(arm or {"x": 1})))
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    assert json.loads(data)["asked"]["arm"] == json.loads(json.dumps(arm or {"x": 1}).encode().decode())


def test_a_name_that_is_not_utf8_does_not_cost_the_record() -> None:
    assert json.loads(encode(close_line(text="bad \udcff name")))["text"] == "bad ? name"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_no_nan(number: float) -> None:
    with pytest.raises(RecordsError):
        encode(close_line(measured=Measured("smoke", MEASURED.checks, {"x_s": (number,)})))


def test_values_of_other_kinds_are_not_written_as_their_repr() -> None:
    assert jsonable({"at": Path("/x"), "all": (1, {2, 1})}) == {"at": "/x", "all": [1, [1, 2]]}
    for value in (b"bytes", object(), int):
        with pytest.raises(RecordsError, match="cannot hold"):
            jsonable(value)


def test_times_are_utc_and_run_ids_sort_by_them() -> None:
    moment = datetime(2026, 1, 31, 23, 59, 59, 7999, tzinfo=timezone(timedelta(hours=-2)))
    assert timestamp(moment) == "2026-02-01T01:59:59.007Z"
    later = datetime(2026, 2, 1, 2, 0, tzinfo=UTC)
    assert new_run_id(moment).startswith("20260201T015959-")
    assert new_run_id(moment) < new_run_id(later)
    assert new_run_id(moment) != new_run_id(moment)
    assert violation(written(open_line(new_run_id())), strict=True) is None
