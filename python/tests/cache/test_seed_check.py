"""What a build must not do to the files that it began with."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from seed_kit import (
    BF4,
    FIRST,
    INPUTS,
    INSIDE,
    NAMES,
    OLD,
    begin,
    complete,
    files_of,
    finish,
    no_reflink,
    pair,
    with_env,
)

from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import scan
from ttstack.cache.marker import key_of, read_marker, write_marker
from ttstack.cache.seed import seed
from ttstack.cache.seed_check import check_seeds
from ttstack.cache.seed_record import SEEDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["pair"]


@pytest.fixture
def linked(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a cache and one that shares its files."""
    no_reflink(monkeypatch)
    seed(*pair, by_rename=True)
    return pair


def test_seeds_that_nobody_touched_are_well(linked: tuple[Path, Path]) -> None:
    seen = check_seeds(linked[1])
    assert (seen.source, seen.changed, seen.damaged, seen.replaced, seen.text) == (linked[0].name, (), (), (), "")


def test_a_cache_without_seeds_has_nothing_to_check(tmp_path: Path) -> None:
    assert check_seeds(complete(tmp_path, INPUTS)).source == ""


def test_a_file_that_was_renamed_over_harms_nobody(linked: tuple[Path, Path]) -> None:
    source, target = linked
    beside = target / "new"
    beside.write_bytes(b"other")
    beside.rename(target / FIRST)
    (target / INSIDE / NAMES[1]).unlink()
    seen = check_seeds(target)
    assert (seen.changed, seen.damaged) == ((), ())
    assert seen.replaced == (FIRST, f"{INSIDE}/{NAMES[1]}")
    assert b"weights" in files_of(source)[FIRST]


def _same_time(file: Path) -> None:
    file.write_bytes(b"W" * file.stat().st_size)
    os.utime(file, ns=(OLD, OLD))


def _longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"more")
    os.utime(file, ns=(OLD, OLD))


def _rewritten(file: Path) -> None:
    file.write_bytes(file.read_bytes())


def _written_then_renamed_over(file: Path) -> None:
    _rewritten(file)
    beside = file.with_name("beside")
    beside.write_bytes(b"other")
    beside.rename(file)


@pytest.mark.parametrize("harm", [_same_time, _longer, _rewritten, _written_then_renamed_over])
def test_a_write_in_place_breaks_every_cache_that_has_the_file(
    linked: tuple[Path, Path], tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    source, target = linked
    third = begin(tmp_path, with_env(MLP_BF4="1"))
    seed(source, third, by_rename=True)
    finish(third)
    stranger = complete(tmp_path, INPUTS | {"mesh": "P150"})
    harm(target / FIRST)
    seen = check_seeds(target)
    assert seen.changed == (FIRST,)
    assert seen.damaged == tuple(sorted({source.name, target.name, third.name}))
    assert stranger.name not in seen.damaged
    assert source.name in seen.text


def test_a_write_into_the_source_is_seen_from_the_new_cache(linked: tuple[Path, Path]) -> None:
    source, target = linked
    _rewritten(source / FIRST)
    assert check_seeds(target).changed == (FIRST,)


def test_when_the_source_was_removed_the_new_cache_stands_alone(linked: tuple[Path, Path]) -> None:
    source, target = linked
    source.rename(source.with_name("gone"))
    assert check_seeds(target).changed == ()
    _rewritten(target / FIRST)
    seen = check_seeds(target)
    assert (seen.changed, seen.damaged) == ((FIRST,), (target.name,))


def test_a_write_into_ones_own_copy_harms_nobody(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    no_reflink(monkeypatch)
    source, target = pair
    seed(source, target, by_rename=False)
    _longer(target / FIRST)
    seen = check_seeds(target)
    assert (seen.changed, seen.damaged, seen.replaced) == ((), (), (FIRST,))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 9}'])
def test_a_record_that_cannot_be_believed_is_no_clean_bill(linked: tuple[Path, Path], text: str) -> None:
    (linked[1] / SEEDS).write_text(text)
    with pytest.raises(CacheError):
        check_seeds(linked[1])


def test_a_record_that_leads_outside_is_refused(linked: tuple[Path, Path]) -> None:
    file = linked[1] / SEEDS
    file.write_text(file.read_text().replace(FIRST, "../../etc/passwd"))
    with pytest.raises(CacheError, match="no file of a cache"):
        check_seeds(linked[1])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("source", "../elsewhere", "from where"),
        ("samples", {FIRST: 1}, "from where"),
        ("method", "magic", "how files were put"),
        ("others", {FIRST: "magic"}, "how files were put"),
        ("inodes", ["1", "2"], "how files were put"),
        ("inodes", [1], "each file"),
        ("inodes", [1, 2, 3], "each file"),
        ("more", 1, "more"),
    ],
)
def test_each_part_of_a_record_is_looked_at(linked: tuple[Path, Path], name: str, value: object, text: str) -> None:
    head, _, manifest = (linked[1] / SEEDS).read_text().partition("\n")
    (linked[1] / SEEDS).write_text(f"{json.dumps(json.loads(head) | {name: value})}\n{manifest}")
    with pytest.raises(CacheError, match=text):
        check_seeds(linked[1])


def test_seeds_do_not_count_as_files_of_a_cache(linked: tuple[Path, Path]) -> None:
    assert scan(linked[1]) == scan(linked[0])
    marker = read_marker(linked[1])
    assert marker is not None
    assert key_of(BF4) == marker.key
    write_marker(linked[1], marker)
