"""``ttx reserve``: what it says, in which stream, and its exit codes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from seed_kit import begin, builder, finish, write_files

from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import Shelf
from ttstack.cache import room
from ttstack.cache.marker import read_marker, write_marker
from ttstack.cache.types import MARKER, USED
from ttstack.cli import cache_sources
from ttstack.cli.main import main
from ttstack.host.filesystems import Filesystem, filesystem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ttstack.cache.uses import Sources
    from ttstack.cli.command import Context
    from ttstack.host.containers import Answer
    from ttstack.host.types import Places

ARM = """\
schema = 1
pin = "sim"
model = "big"
[engine]
kind = "sim"
runtime = "process"
port = 8123
[cards]
{cards}
"""
MODELS = 'schema = 1\n[big]\npath = "/nowhere/model"\nrevision = "local"\ncache_gb = 20\n'
PIN = 'schema = 1\ndescription = "no image"\nimage = ""\nhome = ""\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache root of a simulated host, on which two arms can run."""
    for name, text in (
        ("arms/models.toml", MODELS),
        ("arms/any.toml", ARM.format(cards="count = 1")),
        ("arms/one.toml", ARM.format(cards='ids = ["0000:01:00.0"]')),
        ("pins/sim.toml", PIN),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("TTX_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TTX_ARMS", str(tmp_path / "arms"))
    monkeypatch.delenv("TTX_SHARE", raising=False)
    monkeypatch.chdir(tmp_path)

    def absent(command: Sequence[str], _deadline: float) -> Answer:
        raise FileNotFoundError(command[0])

    def sources(context: Context, places: Places) -> Sources:
        """Let no engine and no service manager be installed, whatever is here."""
        nowhere = tmp_path / "nowhere"
        return replace(found(context, places), run=absent, socket=nowhere, unit_folders=(), booted=nowhere)

    found = cache_sources.sources_for
    monkeypatch.setattr(cache_sources, "sources_for", sources)
    return tmp_path / "state/sim-host/cache"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that gives every folder a disk with so many GB free."""

    def put(free: int) -> None:
        def find(path: Path, proc: Path) -> Filesystem:
            return replace(filesystem_of(path, proc), free=free * 10**9, files_free=None, mount="/the disk")

        monkeypatch.setattr(room, "filesystem_of", find)

    return put


def _inputs(root: Path, arm: str = "any") -> dict[str, object]:
    top = root.parents[2]
    return dict(cache_key(load(arm, Shelf(top / "arms", top / "pins"))).inputs)


def _old(folder: Path) -> None:
    """Let a cache be from long ago, for a gc."""
    marker = read_marker(folder)
    assert marker is not None
    write_marker(folder, replace(marker, made="2020-01-01T00:00:00Z", completed="2020-01-01T00:00:00Z"))
    (folder / USED).touch()
    for name in (MARKER, USED):
        os.utime(folder / name, (10**9, 10**9))


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["reserve", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_it_fits(root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]) -> None:
    disk(23)
    code, told = _json(capsys, "any")
    assert code == 0
    assert (told["fits"], told["standing"], told["gc"]) == (True, None, None)
    assert told["path"] == str(root / told["key"])
    assert (told["reservation"]["expected"], told["reservation"]["basis"]) == (20 * 10**9, "catalogue")
    (share,) = told["reservation"]["disks"]
    assert (share["needed"], share["short"]) == (20 * 10**9, "")
    assert not root.exists()  # nothing was started, nothing was made


def test_people_get_a_table_and_a_sentence(
    disk: Callable[[int], None], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk(23)
    assert main(["reserve", "any"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0].split("  ")[0] == "DISK"
    assert "/the disk" in told.out
    assert "fits" in told.out
    assert "20.0 GB (as models.toml says) can be built" in told.err
    assert not root.exists()


def test_cards_that_only_their_host_knows_do_not_matter(
    disk: Callable[[int], None], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk(23)
    assert _json(capsys, "one")[0] == 0
    assert not root.exists()


def test_short_is_exit_3_with_what_a_gc_would_free(
    root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    disk(21)
    old, used = (begin(root, _inputs(root) | {"model": name}) for name in ("old", "used"))
    for folder in (old, used):
        write_files(folder, bytes(100_000))
        finish(folder)
    _old(old)
    code, told = _json(capsys, "any")
    assert (code, told["fits"]) == (3, False)
    assert "21.0 GB free" in told["reservation"]["disks"][0]["short"]
    assert told["gc"]["unread"] == []
    (entry,) = told["gc"]["entries"]
    assert (entry["path"], entry["freed"]) == (str(old), told["gc"]["freed"])
    assert entry["freed"] >= 200_000
    assert main(["reserve", "any"]) == 3
    said = capsys.readouterr()
    assert str(old) in said.out
    assert str(used) not in said.out
    assert "ttx cache gc --keep-days 0" in said.err
    assert "cannot be built" in said.err
    assert old.is_dir()


def test_short_without_anything_to_free(
    root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    disk(21)
    root.mkdir(parents=True)
    assert main(["reserve", "any"]) == 3
    assert "would free nothing" in capsys.readouterr().err


def test_another_build_is_named(root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]) -> None:
    disk(50)
    begin(root, _inputs(root) | {"revision": "b"}, expected=20 * 10**9, builder=builder("run-b", arm="theirs"))
    code, told = _json(capsys, "any")
    assert code == 0
    assert [build["run"] for build in told["reservation"]["builds"]] == ["run-b"]
    assert main(["reserve", "any"]) == 0
    assert "run run-b (arm theirs) builds" in capsys.readouterr().err
    disk(43)
    assert main(["reserve", "any"]) == 3


def test_what_was_measured_counts_more_than_the_catalogue(
    root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    disk(5)
    folder = begin(root, _inputs(root) | {"revision": "b"})
    write_files(folder)
    finish(folder)
    told = _json(capsys, "any")[1]
    assert (told["fits"], told["reservation"]["basis"]) == (True, "similar")
    assert told["reservation"]["expected"] < 1000


def test_a_complete_cache_needs_no_room(
    root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    disk(0)
    folder = begin(root, _inputs(root))
    write_files(folder)
    finish(folder)
    code, told = _json(capsys, "any")
    assert (code, told["fits"], told["standing"], told["reservation"]) == (0, True, "complete", None)
    assert main(["reserve", "any"]) == 0
    said = capsys.readouterr()
    assert (said.out, "is complete" in said.err) == ("", True)


def test_one_that_is_being_built_says_by_whom(
    root: Path, disk: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    disk(50)
    begin(root, _inputs(root), expected=20 * 10**9, builder=builder("run-7"))
    assert main(["reserve", "any"]) == 0
    assert "is being built by run run-7" in capsys.readouterr().err
