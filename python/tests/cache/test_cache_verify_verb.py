"""``ttx cache verify``, as a person types it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cache_kit import FIXTURES, builder, building, complete, fill, inputs_of, marker_of
from desk_kit import FIRST, Desk, make_desk

from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.types import MARKER, REGISTRY
from ttstack.cli import cache_check
from ttstack.errors import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.cache.verify import Report


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def test_verify_looks_at_all_that_are_complete(desk: Desk) -> None:
    one, two = complete(desk.root), complete(desk.root, inputs_of(mesh="P300"))
    building(desk.root, inputs_of(mesh="P150x2"))
    assert [line.split("  ")[1] for line in desk.ttx("verify").splitlines()] == ["whole: 2 files, 224 B"] * 2
    os.truncate(two / FIRST, 3)
    out = desk.ttx("verify", code=Exit.FAILED)
    assert f"  {FIRST}: it has 3 bytes, and had 112" in out
    marker = read_marker(two)
    assert marker is not None
    assert (marker.state, marker.reason) == ("broken", f"{FIRST}: it has 3 bytes, and had 112")
    assert json.loads((desk.root / REGISTRY).read_text())["caches"][two.name][1]["state"] == "broken"
    assert desk.ttx("verify").startswith(f"{one.name}  whole")  # a broken one is no longer among them
    (entry,) = desk.json("verify", two.name, code=Exit.FAILED)
    assert (entry["standing"], entry["whole"]) == ("broken", False)


def test_a_full_one_finds_a_changed_byte_and_remembers_the_rest(desk: Desk) -> None:
    folder = complete(desk.root, files=1)
    data = (FIXTURES / "one_dtype_BFLOAT8_B_layout_TILE.tensorbin").read_bytes()
    (folder / "later.tensorbin").write_bytes(data)
    assert "  2 file(s) hashed for the first time\n" in desk.ttx("verify", folder.name, "--full")
    assert "2 file(s) as they were the last time\n" in desk.ttx("verify", folder.name, "--full")
    (folder / "later.tensorbin").write_bytes(data[:-1] + b"!")
    assert desk.ttx("verify")
    assert "its content was changed" in desk.ttx("verify", "--full", code=Exit.FAILED)
    marker = read_marker(folder)
    assert marker is not None
    assert marker.state == "broken"


def test_what_a_running_engine_writes_just_now_is_no_fault(desk: Desk) -> None:
    folder = complete(desk.root)
    (folder / f"{FIRST}.tmp.1.0").write_bytes(b"half")
    handle = KeyLock(desk.root, folder.name).shared()
    assert handle is not None
    (entry,) = desk.json("verify", folder.name)
    assert (entry["faults"], entry["later"]) == ([], [f"{FIRST}.tmp.1.0"])
    os.close(handle)
    (entry,) = desk.json("verify", folder.name, code=Exit.FAILED)
    assert [fault["kind"] for fault in entry["faults"]] == ["leftover"]
    assert entry["marked"].startswith("it stays complete")  # as a start would use it
    marker = read_marker(folder)
    assert marker is not None
    assert marker.state == "complete"
    (folder / "P150" / "later").touch()
    (entry,) = desk.json("verify", folder.name, code=Exit.FAILED)
    assert "marked as broken" in entry["marked"]


@pytest.mark.parametrize("full", [True, False])
def test_what_an_engine_wrote_as_it_was_looked_at_is_looked_at_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    folder = complete(desk.root)
    later = folder / "P150" / "later"
    later.touch()
    examine = cache_check.examine

    def ends(path: Path, **more: Any) -> Report:  # noqa: ANN401 - as it is called
        report = examine(path, **more)
        later.write_bytes(b"whole")
        return report

    monkeypatch.setattr(cache_check, "examine", ends)
    (entry,) = desk.json("verify", folder.name, *(["--full"] * full))
    assert (entry["faults"], entry["later"], entry["marked"]) == ([], ["P150/later"], "")


def test_verify_of_what_has_nothing_to_verify(desk: Desk) -> None:
    (desk.root / "other").mkdir(parents=True)
    desk.ttx("verify", "other", code=Exit.USAGE)
    folder = desk.root / "jit/try-x"
    folder.mkdir(parents=True)
    write_marker(folder, replace(marker_of(), kind="jit", key="try-x", state="complete"))
    desk.ttx("verify", "jit/try-x", code=Exit.USAGE)
    assert "a kernel cache" in desk.err
    live = building(desk.root, builder=builder(alive=True))
    desk.ttx("verify", live.name, code=Exit.REFUSED)
    (live / MARKER).write_text("{}")
    assert "not known: " in desk.ttx("verify", live.name, code=Exit.FAILED)
    assert (live / MARKER).read_text() == "{}"


def test_an_unmarked_one_is_looked_at_and_stays_as_it_is(desk: Desk) -> None:
    folder = desk.root / "0123456789abcdef"
    fill(folder)
    assert "whole, unmarked" in desk.ttx("verify", folder.name, "--full")
    assert sorted(path.name for path in folder.iterdir()) == ["P150"]
