"""What goes into a key changes it, nothing else does, and which input it was is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cache_kit import inputs_of
from hypothesis import given
from hypothesis import strategies as st

from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.cache.marker import key_of
from ttstack.cache.why import Difference, differences, flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.arm.types import Asked

PROJECT = Path(__file__).resolve().parents[3]
NAMES = st.text("abc", min_size=1, max_size=3)
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2)
TABLES = st.fixed_dictionaries({"mesh": VALUES, "env": st.dictionaries(NAMES, VALUES, max_size=3)})


def prod() -> Asked:
    return load("prod", Shelf(PROJECT / "arms", PROJECT / "pins"))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ()),
        ({"mesh": "P300"}, (Difference("mesh", "P150", "P300"),)),
        ({"env": {"A": "1"}}, (Difference("env.A", None, "1"),)),
        ({"version": 2, "dtype": "x"}, (Difference("dtype", "auto", "x"), Difference("version", 1, 2))),
        ({"version": 1.0}, ()),
        ({"version": True}, (Difference("version", asked=1, there=True),)),
    ],
)
def test_the_inputs_that_differ(changes: dict[str, object], found: tuple[Difference, ...]) -> None:
    assert differences(inputs_of(), inputs_of(**changes)) == found


def test_an_input_that_one_of_them_has_not() -> None:
    there = {name: value for name, value in inputs_of().items() if name != "optimizations"}
    assert differences(inputs_of(), there) == (Difference("optimizations", "default", None),)


@given(one=TABLES, other=TABLES)
def test_none_differs_exactly_when_the_keys_are_equal(one: dict[str, object], other: dict[str, object]) -> None:
    assert (differences(one, other) == ()) == (key_of(one) == key_of(other))


def test_tables_are_looked_into() -> None:
    assert flat({"a": 1, "env": {"B": {"C": 2}, "D": {}}}) == {"a": 1, "env.B.C": 2, "env.D": {}}


def _arm(**changes: object) -> Callable[[Asked], Asked]:
    return lambda asked: replace(asked, arm=replace(asked.arm, **changes))  # type: ignore[arg-type]


def _engine(**changes: object) -> Callable[[Asked], Asked]:
    return lambda asked: replace(asked, arm=replace(asked.arm, engine=replace(asked.arm.engine, **changes)))  # type: ignore[arg-type]


def _args(**changes: object) -> Callable[[Asked], Asked]:
    return lambda asked: _engine(args={**asked.arm.engine.args, **changes})(asked)


def _model(**changes: object) -> Callable[[Asked], Asked]:
    return lambda asked: replace(asked, model=replace(asked.model, **changes))  # type: ignore[arg-type]


def _mesh(asked: Asked) -> Asked:
    return _arm(cards=replace(asked.arm.cards, mesh="P300"))(asked)


def _wheel(asked: Asked) -> Asked:
    assert asked.pin.wheel is not None
    return replace(asked, pin=replace(asked.pin, wheel=replace(asked.pin.wheel, version="0.81.2")))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_model(hf="other/name"), "model"),
        (_model(revision="another"), "revision"),
        (_mesh, "mesh"),
        (_args(dtype="bfloat16"), "dtype"),
        (_engine(tt={"optimizations": "accuracy"}), "optimizations"),
        (_arm(weights_env={"QWEN36_LM_HEAD_BF4": "other"}), "env"),
        (_wheel, "format"),
    ],
    ids=["model", "revision", "mesh", "dtype", "optimizations", "weights variable", "wheel"],
)
def test_what_changes_the_bytes_changes_the_key(change: Callable[[Asked], Asked], name: str) -> None:
    before, after = cache_key(prod()), cache_key(change(prod()))
    assert before.key != after.key
    assert {one.name.partition(".")[0] for one in differences(before.inputs, after.inputs)} == {name}


@pytest.mark.parametrize(
    "change",
    [
        _args(**{"max-num-seqs": 1}),
        _args(**{"max-model-len": 4096, "block-size": 32}),
        _engine(port=1),
        _engine(boot_timeout_s=1, stop_grace_s=1),
        _engine(tt={"trace_mode": "none"}),
        _arm(env={"TT_LOGGER_LEVEL": "debug"}),
        _arm(name="other", description="other"),
        _model(served_name="other", cache_gb=1.0),
    ],
    ids=["seqs", "lengths", "port", "times", "trace", "plain variable", "names", "catalogue"],
)
def test_what_does_not_leaves_it(change: Callable[[Asked], Asked]) -> None:
    assert cache_key(prod()) == cache_key(change(prod()))
