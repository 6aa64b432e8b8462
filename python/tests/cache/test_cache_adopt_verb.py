"""``ttx cache adopt`` and ``trust``, as a person types them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cache_kit import age, building, complete, fill
from desk_kit import FIRST, Desk, make_desk

from ttstack.cache.checkpoint import signature
from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import read_marker
from ttstack.cache.types import MARKER, REGISTRY
from ttstack.cache.verify import verify
from ttstack.errors import Exit


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def adoptable(desk: Desk, arm: str = "try") -> Path:
    folder = desk.root / desk.key(arm).key
    fill(folder, 3)
    age(folder, 1000)
    return folder


def test_adopt_makes_a_complete_cache_of_what_was_there(desk: Desk) -> None:
    folder = adoptable(desk)
    before = {path: path.read_bytes() for path in folder.rglob("*.tensorbin")}
    assert desk.ttx("adopt", folder.name, "--arm", "try") == f"cache {folder.name} is complete: 3 files, 336 bytes\n"
    marker = read_marker(folder)
    assert marker is not None
    assert (marker.state, marker.files, marker.inputs) == ("complete", 3, desk.key("try").inputs)
    assert marker.checkpoint == signature(Path(desk.asked("try").model.path))
    assert verify(folder) == ()
    assert {path: path.read_bytes() for path in before} == before
    assert folder.name in json.loads((desk.root / REGISTRY).read_text())["history"]
    desk.ttx("adopt", folder.name, "--arm", "try", code=Exit.REFUSED)
    assert "is complete: only an unmarked one can be adopted" in desk.err


def test_adopt_refuses_another_arms_key(desk: Desk) -> None:
    folder = adoptable(desk)
    desk.ttx("adopt", folder.name, "--arm", "env", code=Exit.USAGE)
    assert "ttx cache why env" in desk.err
    assert read_marker(folder) is None


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda folder: os.truncate(folder / FIRST, 9), "is not whole: "),
        (lambda folder: (folder / f"{FIRST}.tmp.1").touch(), "was written to 0 s ago"),
        (lambda folder: _old(folder / f"{FIRST}.tmp.1"), "a temporary file that was left over"),
        (lambda folder: (folder / "x.tensorbin").touch(), "was written to 0 s ago"),
        (lambda folder: [path.unlink() for path in folder.rglob("*.tensorbin")], "is empty"),
        (lambda folder: (folder / MARKER).write_text(""), "is unreadable"),
        (lambda folder: folder.rename(folder.with_name("x")), "there is no "),
    ],
    ids=["cut", "being written", "leftover", "new", "empty", "unreadable", "absent"],
)
def test_adopt_refuses_what_is_not_whole_and_still(desk: Desk, spoil: Any, text: str) -> None:  # noqa: ANN401
    folder = adoptable(desk)
    spoil(folder)
    if text.startswith("is not whole"):
        age(folder, 1000)
    desk.ttx("adopt", folder.name, "--arm", "try", code=Exit.USAGE if text == "there is no " else Exit.REFUSED)
    assert text in desk.err
    assert not (folder / MARKER).exists() or (folder / MARKER).read_text() == ""


def _old(path: Path) -> None:
    path.write_bytes(b"x")
    os.utime(path, (1, 1))


def test_adopt_refuses_what_a_run_holds(desk: Desk) -> None:
    folder = adoptable(desk)
    handle = KeyLock(desk.root, folder.name).shared()
    assert handle is not None
    desk.ttx("adopt", folder.name, "--arm", "try", code=Exit.REFUSED)
    assert "is in use by a run" in desk.err
    os.close(handle)
    desk.ttx("adopt", folder.name, "--arm", "try")


def test_adopt_says_what_it_could_not_look_at(desk: Desk) -> None:
    folder = adoptable(desk)
    (folder / "notes.bin").write_bytes(b"x")
    age(folder, 1000)
    desk.ttx("adopt", folder.name, "--arm", "try")
    assert "of 1 of 4 files nothing but the size can be looked at" in desk.err


def test_trust_takes_the_checkpoint_as_it_is(desk: Desk) -> None:
    folder = complete(desk.root, dict(desk.key("try").inputs), checkpoint="old")
    assert desk.ttx("trust", folder.name) == f"cache {folder.name} is trusted with the checkpoint as it is now\n"
    marker = read_marker(folder)
    assert marker is not None
    assert marker.checkpoint == signature(Path(desk.asked("try").model.path))
    assert desk.json("trust", folder.name, "--arm", "try") == {"key": folder.name, "changed": False}


def test_trust_is_for_complete_caches_of_a_known_arm(desk: Desk) -> None:
    inputs = dict(desk.key("try").inputs)
    folder = building(desk.root, inputs)
    desk.ttx("trust", folder.name, code=Exit.REFUSED)
    assert "is building: only a complete tensor cache" in desk.err
    desk.ttx("trust", "0" * 16, code=Exit.USAGE)
    assert "no arm in" in desk.err
    desk.ttx("trust", desk.key("env").key, code=Exit.USAGE)
    assert "there is no cache" in desk.err
    desk.ttx("trust", folder.name, "--arm", "env", code=Exit.USAGE)
    desk.ttx("trust", desk.key("bare").key, code=Exit.USAGE)
    assert "has no checkpoint folder" in desk.err
