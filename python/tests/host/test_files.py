from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ttstack.host import files
from ttstack.host.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path


def test_json_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    files.write_json(path, {"a": 1})
    before = path.stat().st_ino
    files.write_json(path, {"a": "ü"})
    assert files.read_json(path) == {"a": "ü"}
    assert path.stat().st_ino != before  # renamed into place, never rewritten under a reader
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    files.write_json(path, {"a": 1})

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(HostError, match="No space"):
        files.write_json(path, {"a": 2})
    assert files.read_json(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "1"])
def test_what_is_no_json_object_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(HostError, match=r"x\.json"):
        files.read_json(path)


def test_a_missing_small_file_is_none_and_an_unreadable_one_is_an_error(tmp_path: Path) -> None:
    assert files.read_text(tmp_path / "no") is None
    with pytest.raises(HostError):
        files.read_text(tmp_path)


def test_the_name_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_folder", synced.append)
    files.write_json(tmp_path / "state.json", {"a": 1})
    assert synced == [tmp_path]


def test_an_open_file_may_have_lost_its_name(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("w") as file:
        assert files.is_at(file.fileno(), path)
        path.unlink()
        assert not files.is_at(file.fileno(), path)
        path.write_text("another")
        assert not files.is_at(file.fileno(), path)
