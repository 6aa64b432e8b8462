from __future__ import annotations

import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttstack.arm.canonical import canonical_json, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e-05, "1e-05"),
        (0.00012, "0.00012"),
        (123456.5, "123456"),  # six digits: an arm may not ask for more
        (1e15, "1000000000000000"),
        (-2.25, "-2.25"),
    ],
)
def test_numbers_are_spelled_in_one_way(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_does_not_have_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not a JSON number"):
        number(value)


def test_compact_sorted_and_unescaped() -> None:
    value: object = MappingProxyType({"ü": (1.0, 'é\n"\\'), "b": True, "a": None, "B": {"z": [], "y": {}}})
    assert canonical_json(value) == '{"B":{"y":{},"z":[]},"a":null,"b":true,"ü":[1,"é\\n\\"\\\\"]}'


@pytest.mark.parametrize("value", [{1: 2}, {"a": {None: 1}}, object(), b"x", {1}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text(st.characters(exclude_categories=["Cs"]))
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)),
    max_leaves=12,
)


@given(json_values)
def test_it_reads_back_as_the_same_value_and_spells_it_the_same(value: object) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text
    assert text == json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
