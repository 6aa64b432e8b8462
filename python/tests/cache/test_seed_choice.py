"""Which cache another may begin with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from seed_kit import (
    BF4,
    FIRST,
    IN_NAME,
    INPUTS,
    begin,
    complete,
    finish,
    with_env,
    write_files,
)

from ttstack.cache.seed import choose

if TYPE_CHECKING:
    from pathlib import Path


def _choice(
    root: Path, inputs: dict[str, object], in_name: tuple[str, ...] = IN_NAME, checkpoint: str = ""
) -> str | None:
    return choose(root, inputs, in_name=in_name, checkpoint=checkpoint).key


def test_a_cache_that_differs_only_in_what_goes_into_names_is_chosen(tmp_path: Path) -> None:
    source = complete(tmp_path, INPUTS)
    assert _choice(tmp_path, BF4) == source.name
    assert _choice(tmp_path, with_env(HEAD_BF4="1", MLP_BF4="0")) == source.name


@pytest.mark.parametrize(
    "name", ["version", "model", "revision", "mesh", "dtype", "optimizations", "format", "a later ttx's own"]
)
def test_any_other_input_that_differs_forbids_it(tmp_path: Path, name: str) -> None:
    complete(tmp_path, INPUTS)
    other = BF4 | {name: "another"}
    assert _choice(tmp_path, other) is None
    if name != "model":
        assert name in choose(tmp_path, other, in_name=IN_NAME, checkpoint="").reason


def test_an_input_that_is_missing_here_forbids_it(tmp_path: Path) -> None:
    complete(tmp_path, INPUTS | {"more": 1})
    assert _choice(tmp_path, BF4) is None


def test_a_variable_that_the_catalogue_does_not_name_forbids_it(tmp_path: Path) -> None:
    complete(tmp_path, with_env(GDN_BF4="1"))
    assert _choice(tmp_path, with_env(HEAD_BF4="1")) is None
    assert _choice(tmp_path, with_env(GDN_BF4="0", HEAD_BF4="1")) is None
    assert _choice(tmp_path, with_env(GDN_BF4="1", HEAD_BF4="1")) is not None
    reason = choose(tmp_path, BF4, in_name=IN_NAME, checkpoint="").reason
    assert "variable GDN_BF4" in reason


def test_without_a_word_of_the_catalogue_there_is_no_seeding(tmp_path: Path) -> None:
    complete(tmp_path, INPUTS)
    chosen = choose(tmp_path, BF4, in_name=(), checkpoint="")
    assert chosen.key is None
    assert "the catalogue names no variable" in chosen.reason


def test_another_checkpoint_forbids_it(tmp_path: Path) -> None:
    complete(tmp_path, INPUTS, checkpoint="aa")
    assert _choice(tmp_path, BF4, checkpoint="bb") is None
    assert _choice(tmp_path, BF4, checkpoint="") is None
    assert _choice(tmp_path, BF4, checkpoint="aa") is not None


def test_only_complete_caches_count(tmp_path: Path) -> None:
    begin(tmp_path, INPUTS)
    broken = begin(tmp_path, with_env(MLP_BF4="1"))
    write_files(broken)
    finish(broken, "broken", "")
    assert _choice(tmp_path, BF4) is None


@pytest.mark.parametrize("harm", ["shorter", "missing", "empty"])
def test_a_cache_that_does_not_verify_is_never_a_seed(tmp_path: Path, harm: str) -> None:
    source = complete(tmp_path, INPUTS)
    file = source / FIRST
    if harm == "missing":
        file.unlink()
    else:
        os.truncate(file, 0 if harm == "empty" else 3)
    chosen = choose(tmp_path, BF4, in_name=IN_NAME, checkpoint="")
    assert chosen.key is None
    assert "not whole" in chosen.reason


def test_the_one_that_differs_least_comes_first_then_the_newest(tmp_path: Path) -> None:
    complete(tmp_path, with_env(MLP_BF4="1"))
    least = complete(tmp_path, INPUTS)
    assert _choice(tmp_path, BF4) == least.name
    newer = begin(tmp_path, with_env(HEAD_BF4="2"))
    write_files(newer)
    finish(newer, completed="2031-01-01T00:00:00Z")
    assert _choice(tmp_path, BF4) == newer.name
    (newer / FIRST).unlink()
    assert _choice(tmp_path, BF4) == least.name
