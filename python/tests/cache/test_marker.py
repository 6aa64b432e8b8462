"""Markers and manifests: what we write comes back, and nothing else is believed."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cache_kit import building, complete, fill, inputs_of, marker_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.arm.canonical import canonical_json
from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import parse_manifest, read_manifest, scan, write_manifest
from ttstack.cache.marker import (
    LIMIT,
    is_key,
    key_of,
    parse_marker,
    read_marker,
    read_used,
    to_table,
    touch_used,
    write_marker,
)
from ttstack.cache.types import MANIFEST, MARKER, USED, Builder, FileEntry, Marker
from ttstack.host.types import ProcessId

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = st.text(max_size=20)
COUNTS = st.integers(0, (1 << 63) - 1)
# Numbers as arms may write them: six significant digits (arm/canonical.py).
NUMBERS = st.integers() | st.integers(-999999, 999999).map(lambda number: number / 100)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
BUILDERS = st.builds(Builder, WORDS, WORDS, WORDS, st.builds(ProcessId, COUNTS, COUNTS), WORDS, COUNTS)


@st.composite
def markers(draw: st.DrawFn) -> Marker:
    inputs = draw(st.dictionaries(WORDS, VALUES, max_size=4))
    kind = draw(st.sampled_from(["tensors", "jit", "stage"]))
    texts = {name: draw(WORDS) for name in ("made", "completed", "reason", "seeded_from", "checkpoint")}
    counts = {name: draw(COUNTS) for name in ("files", "bytes", "expected")}
    state = draw(st.sampled_from(["building", "complete", "broken"]))
    key = key_of(inputs) if kind == "tensors" else draw(st.text("abc-.0", min_size=1, max_size=9))
    return Marker(key, inputs, state, draw(BUILDERS), kind=kind, **texts, **counts)


@given(marker=markers())
@settings(max_examples=40, deadline=None)
def test_any_marker_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, marker: Marker) -> None:
    folder = tmp_path_factory.mktemp("root") / marker.key.replace(".", "d")
    marker = replace(marker, key=folder.name) if marker.kind != "tensors" else marker
    folder.mkdir()
    write_marker(folder, marker)
    assert read_marker(folder) == marker
    assert stat.S_IMODE((folder / MARKER).stat().st_mode) == 0o644


@given(inputs=st.dictionaries(WORDS, VALUES, max_size=4))
def test_the_key_is_the_sum_of_the_canonical_form(inputs: dict[str, Any]) -> None:
    assert key_of(inputs) == sha256(canonical_json(inputs).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("number", "same"), [(1.0, 1), (0.5, 0.5000001), (1e20, 10**20)])
def test_fractions_are_spelled_as_the_canonical_form_does(number: float, same: float) -> None:
    assert key_of({"a": {"b": number}}) == key_of({"a": {"b": same}})
    assert key_of({"a": [number]}) == key_of({"a": [same]})


@given(data=st.binary(max_size=200))
def test_no_bytes_raise_anything_but_ours(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "0123456789abcdef"
    for parse in (parse_marker, parse_manifest):
        with pytest.raises(CacheError):
            parse(data, folder)


@given(cut=st.integers(0, 10**6), at=st.integers(0, 10**6), bits=st.integers(1, 255))
def test_no_flipped_bit_and_no_cut_makes_another_marker(cut: int, at: int, bits: int) -> None:
    marker = marker_of(state="complete", bytes=7, files=1)
    data = json.dumps(to_table(marker)).encode()
    folder = Path("/nowhere") / marker.key
    with pytest.raises(CacheError):
        parse_marker(data[: cut % len(data)], folder)
    at %= len(data)
    flipped = bytearray(data)
    flipped[at] ^= bits
    try:
        found = parse_marker(bytes(flipped), folder)
    except CacheError:
        return
    assert (found.key, found.inputs) == (marker.key, marker.inputs)  # what it was made from has a checksum: the key


def _table(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {**to_table(marker_of()), **changes}


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (_table(schema=2), "schema 2, and this ttx knows 1"),
        (_table(schema="1"), "schema '1'"),
        (_table(schema=True), "schema True"),
        (_table(key="0" * 16), "is the marker of '0000000000000000'"),
        (_table(inputs=inputs_of(mesh="P300")), "its inputs have the key"),
        (_table(inputs=[]), "inputs is []"),
        (_table(state="done"), "state is 'done'"),
        (_table(kind="tensor"), "kind is 'tensor'"),
        (_table(bytes=-1), "bytes is -1"),
        (_table(bytes=1.0), "bytes is 1.0"),
        (_table(bytes=True), "bytes is True"),
        (_table(bytes=1 << 63), "bytes is 9223372036854775808"),
        (_table(made=None), "made is None"),
        (_table(more=1), "'more' is unknown"),
        ({name: value for name, value in _table().items() if name != "reason"}, "reason is missing"),
        (_table(builder={**_table()["builder"], "pid": "1"}), "builder: pid is '1'"),
        (_table(builder={**_table()["builder"], "host": "x"}), "builder: 'host' is unknown"),
        (_table(builder=None), "builder is None"),
    ],
)
def test_what_is_not_ours_to_the_letter_is_not_believed(tmp_path: Path, table: dict[str, Any], text: str) -> None:
    folder = tmp_path / marker_of().key
    folder.mkdir()
    (folder / MARKER).write_text(json.dumps(table))
    with pytest.raises(CacheError) as caught:
        read_marker(folder)
    assert text in caught.value.message


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is not JSON"),
        (b"[]", "does not hold a JSON object"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"schema": 1, "schema": 1}', "a key is there twice"),
        (json.dumps(_table(bytes=0)).replace('"bytes": 0', '"bytes": NaN').encode(), "NaN is no number"),
        (b" " * LIMIT + json.dumps(_table()).encode(), f"is larger than {LIMIT} bytes"),
    ],
)
def test_what_is_no_json_of_ours_is_not_believed(tmp_path: Path, data: bytes, text: str) -> None:
    folder = tmp_path / marker_of().key
    folder.mkdir()
    (folder / MARKER).write_bytes(data)
    with pytest.raises(CacheError) as caught:
        read_marker(folder)
    assert text in caught.value.message


def _as_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "text"),
    [(_as_link, "it is a link"), (_as_pipe, "not a regular file"), (_as_folder, "not a regular file")],
)
def test_only_a_plain_file_is_a_marker(tmp_path: Path, change: Callable[[Path], None], text: str) -> None:
    folder = building(tmp_path)
    change(folder / MARKER)
    with pytest.raises(CacheError) as caught:
        read_marker(folder)
    assert text in caught.value.message


def test_a_directory_that_is_a_link_has_no_marker_of_its_own(tmp_path: Path) -> None:
    folder = building(tmp_path / "elsewhere")
    link = tmp_path / folder.name
    link.symlink_to(folder)
    with pytest.raises(CacheError, match="is a link or no folder"):
        read_marker(link)


def test_no_marker_is_none(tmp_path: Path) -> None:
    assert read_marker(tmp_path) is None
    assert read_marker(tmp_path / "absent") is None


def test_a_marker_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    folder = building(tmp_path)
    before = read_marker(folder)
    for bad in (
        replace(marker_of(), inputs=inputs_of(mesh="P300")),
        marker_of(bytes=-1),
        replace(marker_of(), inputs=inputs_of(mesh={1})),
    ):
        with pytest.raises(CacheError):
            write_marker(folder, bad)
    assert read_marker(folder) == before
    with pytest.raises(CacheError, match="cannot write"):
        write_marker(tmp_path / "absent" / folder.name, marker_of())


def test_a_cut_short_write_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = building(tmp_path)
    before = read_marker(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(CacheError, match="No space left") as caught:
        write_marker(folder, marker_of(state="broken"))
    assert isinstance(caught.value.__cause__, OSError)  # those who have room set aside look for its errno
    assert read_marker(folder) == before
    assert scan(folder) == ()  # and nothing of ours counts as the engine's


def test_its_key_is_the_arms_own() -> None:
    project = Path(__file__).resolve().parents[3]
    found = cache_key(load("sim", Shelf(project / "arms", project / "pins")))
    assert key_of(found.inputs) == found.key
    assert is_key(found.key)


@pytest.mark.parametrize(
    "name", ["", "jit", "0" * 15, "0" * 17, "0" * 15 + "G", "0" * 15 + "A", "0" * 16 + "\n", "\u0660" * 16]
)
def test_other_names_are_no_keys(name: str) -> None:
    assert not is_key(name)


def test_the_last_use_is_the_mtime_of_an_empty_file(tmp_path: Path) -> None:
    assert read_used(tmp_path) is None
    touch_used(tmp_path)
    os.utime(tmp_path / USED, (1, 1))
    touch_used(tmp_path)
    used = read_used(tmp_path)
    assert used is not None
    assert used > 1
    assert (tmp_path / USED).stat().st_size == 0
    (tmp_path / USED).unlink()
    (tmp_path / USED).symlink_to("other")
    with pytest.raises(CacheError, match="cannot touch"):
        touch_used(tmp_path)
    assert read_used(tmp_path) is None
    assert not (tmp_path / "other").exists()


def test_a_manifest_lists_what_is_there_and_nothing_of_ours(tmp_path: Path) -> None:
    folder = complete(tmp_path, files=3)
    (folder / "..ttx-cache.json.abcd").write_text("cut off while it was written")
    (folder / "P150" / ".ttx-looks-like-ours").write_text("but lies deeper")
    (folder / "link").symlink_to("P150")
    names = [file.path for file in scan(folder)]
    assert names == [
        "P150/.ttx-looks-like-ours",
        *(f"P150/layers.{at}_dtype_BFLOAT8_B_layout_TILE.tensorbin" for at in range(3)),
    ]
    listed = read_manifest(folder)
    assert listed is not None
    assert [file.path for file in listed] == names[1:]
    assert all((folder / file.path).stat().st_mtime_ns == file.mtime_ns for file in listed)


def test_any_name_can_be_listed(tmp_path: Path) -> None:
    odd = os.fsdecode(b'\xff\n"\\ \xe2\x80\xa8')
    (tmp_path / odd).write_text("x")
    write_manifest(tmp_path, scan(tmp_path))
    listed = read_manifest(tmp_path)
    assert listed is not None
    assert [file.path for file in listed] == [odd]


@pytest.mark.parametrize(
    "row",
    ["../x", "/etc/passwd", "a//b", "a/../b", "", ".", "a/.", "a\0b"],
)
def test_a_manifest_names_only_files_inside(tmp_path: Path, row: str) -> None:
    with pytest.raises(CacheError, match="is no file of a cache"):
        write_manifest(tmp_path, [FileEntry(row, 1, 1)])
    assert not (tmp_path / MANIFEST).exists()


@pytest.mark.parametrize(
    "rows",
    ['[["a", 1]]', '[["a", -1, 1]]', '[["a", true, 1]]', '[["a", 1, 1.5]]', "[1]", '[["a", 1, 1], ["a", 1, 1]]', "{}"],
)
def test_a_manifest_is_to_the_letter(tmp_path: Path, rows: str) -> None:
    (tmp_path / MANIFEST).write_text(f'{{"schema": 1, "files": {rows}}}')
    with pytest.raises(CacheError):
        read_manifest(tmp_path)


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path: Path) -> None:
    fill(tmp_path / "cache")
    with pytest.raises(CacheError, match="cannot list"):
        scan(tmp_path / "absent")
