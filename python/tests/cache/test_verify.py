"""What is wrong with a cache's files: found by name, size and header, and in full by every byte."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cache_kit import FIXTURES, building, complete, fill, marker_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.cache import headers
from ttstack.cache.errors import CacheError
from ttstack.cache.hashes import HASHES, read_hashes, write_hashes
from ttstack.cache.headers import judge
from ttstack.cache.manifest import scan
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.types import MANIFEST
from ttstack.cache.verify import Fault, examine, verify
from ttstack.sim import cache_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = "P150/layers.0_dtype_BFLOAT8_B_layout_TILE.tensorbin"
ONE, TWO = (FIXTURES / f"{name}_dtype_BFLOAT8_B_layout_TILE.tensorbin" for name in ("one", "two"))


def kinds(folder: Path, *, full: bool = False) -> list[tuple[str, str]]:
    return [(fault.path, fault.kind) for fault in verify(folder, full=full)]


def test_a_whole_one_has_no_fault(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    for full in (False, True):
        report = examine(folder, full=full)
        assert (report.faults, report.files, report.unknown, report.later) == ([], 2, [], [])
        assert report.bytes == sum(file.size for file in scan(folder))


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _as_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere.tensorbin"))
    path.symlink_to("elsewhere.tensorbin")


def _as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] ^= 1  # the length that it tells
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda path: path.unlink(), "missing"),
        (_cut, "size"),
        (_empty, "size"),
        (_as_link, "odd"),
        (_as_pipe, "odd"),
        (_header, "header"),
    ],
    ids=["missing", "cut", "empty", "link", "pipe", "header"],
)
def test_a_spoilt_file_is_found(tmp_path: Path, spoil: Callable[[Path], object], kind: str) -> None:
    folder = complete(tmp_path)
    spoil(folder / FIRST)
    assert (FIRST, kind) in kinds(folder)


def test_a_build_is_judged_without_a_manifest(tmp_path: Path) -> None:
    folder = building(tmp_path)
    fill(folder, 3)
    assert verify(folder) == ()
    _cut(folder / FIRST)
    (folder / "P150/empty.tensorbin").touch()
    (folder / f"{FIRST}.tmp.4711.0").write_bytes(b"x")  # as ttnn 0.81.1 calls it
    (folder / f"{FIRST}.tmp.4711").write_bytes(b"x")  # as the simulated engine does
    (folder / "other.tmp").write_bytes(b"x")
    assert kinds(folder) == [
        ("P150/empty.tensorbin", "empty"),
        (FIRST, "header"),
        (f"{FIRST}.tmp.4711", "leftover"),
        (f"{FIRST}.tmp.4711.0", "leftover"),
        ("other.tmp", "leftover"),
    ]
    assert all(fault.listed for fault in verify(folder))


def test_what_came_after_it_was_completed_is_told_apart(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    cache_files.store(folder / "P150/later.tensorbin", b"x")
    report = examine(folder)
    assert (report.faults, report.later) == ([], ["P150/later.tensorbin"])
    (folder / "P150/half.tensorbin.tmp.1").write_bytes(b"x")
    assert verify(folder) == (
        Fault("P150/half.tensorbin.tmp.1", "it is a temporary file that was left over", "leftover", listed=False),
    )


def test_the_manifest_must_be_there_and_agree_with_the_marker(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    marker = read_marker(folder)
    assert marker is not None
    for wrong in (replace(marker, bytes=1), replace(marker, files=1)):
        write_marker(folder, wrong)
        assert kinds(folder) == [(MANIFEST, "manifest")]
    write_marker(folder, marker)
    (folder / MANIFEST).write_text("{}")
    assert kinds(folder) == [(MANIFEST, "manifest")]
    (folder / MANIFEST).unlink()
    assert kinds(folder) == [(MANIFEST, "manifest")]


def test_what_cannot_be_read_is_not_called_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = complete(tmp_path)
    real = os.open

    def denied(path: str | Path, flags: int, *rest: int, **more: int) -> int:
        if str(path).endswith(FIRST):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr("ttstack.cache.verify.os.open", denied)
    with pytest.raises(CacheError, match=r"cannot read .*: Permission denied"):
        verify(folder)


def test_a_changed_byte_is_found_in_full_by_what_the_file_says_of_itself(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    _flip(folder / FIRST, -1)
    assert verify(folder) == ()
    assert kinds(folder, full=True) == [(FIRST, "content")]


def _flip(path: Path, at: int) -> None:
    seen = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def test_a_changed_byte_is_found_by_the_hashes_of_the_last_time(tmp_path: Path) -> None:
    folder = building(tmp_path)
    shutil.copy(ONE, folder)
    first = examine(folder, full=True)
    assert (first.faults, first.compared, len(first.hashes)) == ([], 0, 1)
    write_hashes(folder, first.hashes)
    assert examine(folder, full=True).compared == 1
    _flip(folder / ONE.name, -1)
    (fault,) = verify(folder, full=True)
    assert fault.text == "its content was changed, without a trace, since it was hashed"
    os.utime(folder / ONE.name, (1, 1))
    (fault,) = verify(folder, full=True)
    assert fault.text == "its content was changed, and rewritten, since it was hashed"
    assert scan(folder) == scan(folder)
    assert [file.path for file in scan(folder)] == [ONE.name]  # the hashes are ours


@pytest.mark.parametrize(
    "text", ["", "{}", '{"schema": 1, "files": [["a", 1, 1, "x"]]}', '{"schema": 1, "files": [1]}']
)
def test_hashes_that_cannot_be_believed_are_refused(tmp_path: Path, text: str) -> None:
    assert read_hashes(tmp_path) == {}
    (tmp_path / HASHES).write_text(text)
    with pytest.raises(CacheError):
        read_hashes(tmp_path)


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    folder = complete(tmp_path, files=3)
    told: list[tuple[int, int]] = []
    report = examine(folder, full=True, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (report.bytes, report.bytes)
    assert len(told) == 3


def test_the_simulated_engine_and_we_mean_one_header(tmp_path: Path) -> None:
    assert (headers.SIMULATED_MAGIC, headers.SIMULATED.format) == (cache_files._MAGIC, cache_files._HEADER.format)
    cache_files.store(tmp_path / "whole.tensorbin", b"payload" * 10)
    cache_files.store(tmp_path / "half.tensorbin", b"payload" * 10, corrupt=True)
    assert not _judged(tmp_path / "whole.tensorbin").fault
    assert "is truncated or corrupt" in _judged(tmp_path / "half.tensorbin").fault


def _judged(path: Path) -> headers.Judged:
    handle = os.open(path, os.O_RDONLY)
    try:
        return judge(handle, path.name, path.stat().st_size)
    finally:
        os.close(handle)


@pytest.mark.parametrize("file", [ONE, TWO], ids=["one", "mesh"])
def test_a_tensor_that_ttnn_wrote_is_known_and_any_cut_of_it_is_found(tmp_path: Path, file: Path) -> None:
    data = file.read_bytes()
    path = tmp_path / file.name
    for length in (len(data), len(data) + 64):  # ttnn 0.81.1 loads a longer one
        path.write_bytes(data.ljust(length, b"x"))
        assert _judged(path) == headers.Judged()
    for length in range(0, len(data), 1 if len(data) < 2000 else 7):
        path.write_bytes(data[:length])
        assert _judged(path).fault, length


@pytest.mark.parametrize("data", [bytes(1472), b"\xff" * 1472, b"\0" * 7], ids=["zeros", "ones", "seven"])
def test_what_ttnn_cannot_load_is_found(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.tensorbin").write_bytes(data)
    assert _judged(tmp_path / "x.tensorbin").fault


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 383), value=st.integers(0, 255), more=st.binary(max_size=16))
def test_no_header_is_too_odd_to_be_judged(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int, more: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.tensorbin"
    data = bytearray(ONE.read_bytes())
    data[at] = value
    data[at : at + len(more)] = more
    path.write_bytes(data)
    _judged(path)
    path.write_bytes(more)
    _judged(path)


def test_of_another_schema_and_of_other_files_only_the_size_is_known(tmp_path: Path) -> None:
    folder = building(tmp_path)
    data = bytearray(ONE.read_bytes())
    table = 8 + int.from_bytes(data[8:12], "little")
    vtable = table - int.from_bytes(data[table : table + 4], "little", signed=True)
    data[vtable + 8 : vtable + 10] = b"\0\0"  # no shards: ttnn's first schema has them elsewhere
    (folder / "old.tensorbin").write_bytes(data)
    (folder / "config.json").write_text("{}")
    report = examine(folder)
    assert (report.faults, report.unknown) == ([], ["config.json", "old.tensorbin"])


def _places(data: bytes) -> dict[str, int]:
    """Where the parts of a header lie that lead to its first shard."""

    def number(at: int) -> int:
        return int.from_bytes(data[at : at + 4], "little")

    def vtable(table: int) -> int:
        return table - int.from_bytes(data[table : table + 4], "little", signed=True)

    def field(table: int, slot: int) -> int:
        at = vtable(table) + 4 + 2 * slot
        return table + int.from_bytes(data[at : at + 2], "little")

    table = 8 + number(8)
    shards = field(table, 2) + number(field(table, 2))
    shard = shards + 4 + number(shards + 4)
    return {"table": table, "vtable": vtable(table), "shards": shards, "kind": field(shard, 0)}


@pytest.mark.parametrize(
    ("part", "value", "known"),
    [
        ("vtable", (2).to_bytes(2, "little"), True),  # shorter than its own head
        ("vtable", (60_000).to_bytes(2, "little"), True),  # longer than the buffer
        ("shards", bytes(4), False),  # a tensor has some
        ("shards", b"\xff" * 4, False),
        ("kind", b"\x02", False),  # storage that is not in the file
        ("kind", b"\x00", False),
    ],
)
def test_a_header_with_one_odd_part(tmp_path: Path, part: str, value: bytes, known: bool) -> None:  # noqa: FBT001
    data = bytearray(ONE.read_bytes())
    at = _places(data)[part]
    data[at : at + len(value)] = value
    (tmp_path / "x.tensorbin").write_bytes(data)
    judged = _judged(tmp_path / "x.tensorbin")
    assert judged == (headers.Judged("its header is corrupt") if known else headers.Judged(known=False))


def test_a_header_whose_table_points_before_it(tmp_path: Path) -> None:
    data = bytearray(ONE.read_bytes())
    places, length = _places(data), int.from_bytes(data[:8], "little")
    back = places["table"] - places["vtable"] + length  # as far from its end as the real one from its beginning
    data[places["table"] : places["table"] + 4] = back.to_bytes(4, "little")
    (tmp_path / "x.tensorbin").write_bytes(data)
    assert _judged(tmp_path / "x.tensorbin").fault == "its header is corrupt"


def test_a_manifest_that_may_not_be_read_is_no_fault_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = complete(tmp_path)
    real = os.open

    def denied(path: str | Path, flags: int, *rest: int, **more: int) -> int:
        if str(path).endswith(MANIFEST):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr("ttstack.cache.strict.os.open", denied)
    with pytest.raises(CacheError, match="Permission denied"):
        verify(folder)


def test_a_marker_of_another_directory_is_no_ground_to_judge_on(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    other = tmp_path / ("0" * 16)
    folder.rename(other)
    with pytest.raises(CacheError, match="is the marker of"):
        verify(other)
    assert marker_of().key == folder.name
