"""``ttx cache ls``, ``show``, ``why`` and ``rebuild-registry``, as a person types them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cache_kit import builder, building, complete, fill, inputs_of
from desk_kit import FIRST, Desk, columns, make_desk

from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import key_of
from ttstack.cache.sizes import Sizes
from ttstack.cache.survey import standing_of
from ttstack.cache.types import LOCKS, REGISTRY, TRASH, USED, Use
from ttstack.cli import cache_view
from ttstack.cli.human import ago, size
from ttstack.errors import Exit
from ttstack.host.places import find_places

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def test_no_caches(desk: Desk) -> None:
    assert desk.ttx("ls") == ""
    assert desk.err == f"there are no caches under {desk.root}\n"
    assert desk.json("ls")[0]["directories"] == []
    assert desk.ttx("verify") == ""
    assert desk.ttx("rebuild-registry") == ""
    assert not desk.root.exists()


def test_all_that_lies_there_is_listed(desk: Desk) -> None:
    whole = complete(desk.root, inputs_of(env={"A": "1"}))
    os.utime(whole / USED, (0, 0))
    building(desk.root, inputs_of(mesh="P300"), expected=28_700_000_000, builder=builder(alive=True))
    fill(desk.root / "0123456789abcdef")
    (desk.root / "tt_metal_cache").mkdir()
    (desk.root / TRASH / "x").mkdir(parents=True)
    rows = columns(desk.ttx("ls"))
    assert sorted(row[1] for row in rows) == ["building", "complete", "not ours", "trash", "unmarked"]
    assert next(row for row in rows if row[0] == whole.name)[1:] == [
        "complete",
        "224 B",
        "try",
        ago(time.time()),
        "org/name main P150 ttnn-0.81.1 A=1",
    ]
    assert next(row for row in rows if row[1] == "building")[2] == "of 28.7 GB"
    assert "ttx cache adopt" in next(row for row in rows if row[1] == "unmarked")[5]
    assert {one["standing"] for one in desk.json("ls")[0]["directories"]} == {row[1] for row in rows}
    assert not (desk.root / REGISTRY).exists()  # looking writes nothing


def test_the_simulated_hosts_caches_are_beside_them(desk: Desk) -> None:
    (desk.simulated.parent / "tree").mkdir(parents=True)
    complete(desk.root)
    complete(desk.simulated)
    key = key_of(inputs_of())
    assert [row[0] for row in columns(desk.ttx("ls"))] == [key, key]
    assert ["simulated; " in row[5] for row in columns(desk.ttx("ls"))] == [False, True]
    assert [entry["simulated"] for entry in desk.json("show", key)] == [False, True]
    assert len(desk.json("verify", key)) == 2
    assert [entry["root"] for entry in desk.json("rebuild-registry")] == [str(desk.root), str(desk.simulated)]


def test_who_has_its_lock_uses_it(desk: Desk) -> None:
    folder = complete(desk.root)
    handle = KeyLock(desk.root, folder.name).shared()
    assert handle is not None
    assert columns(desk.ttx("ls"))[0][5].startswith("in use: somebody who has its lock, shared; org/name")
    os.close(handle)
    assert columns(desk.ttx("ls"))[0][5].startswith("org/name")
    (desk.root / LOCKS / folder.name).unlink()
    (desk.root / LOCKS / folder.name).symlink_to("guard")
    assert columns(desk.ttx("ls"))[0][5].startswith("in use: it cannot be told: ")


def test_what_is_built_is_in_use_and_so_is_what_it_began_with(desk: Desk) -> None:
    seed = complete(desk.root)
    live = building(desk.root, inputs_of(mesh="P300"), builder=builder(alive=True), seeded_from=seed.name)
    used = {row[0]: row[5].split("; ")[0] for row in columns(desk.ttx("ls"))}
    who = "in use: run 20260101T000000-aaaaaa builds "
    assert used == {live.name: f"{who}{live.name}", seed.name: f"{who}{live.name} from it"}


def test_an_arm_names_it_and_does_not_use_it_now(desk: Desk) -> None:
    folder = complete(desk.root, dict(desk.key("try").inputs))
    (row,) = columns(desk.ttx("ls"))
    assert "in use" not in row[5]
    assert desk.json("ls")[0]["directories"][0]["used_by"][0]["source"] == "arm"
    assert "named by" in desk.ttx("show", folder.name)


def test_why_one_is_broken_is_told_before_what_it_was_made_from(desk: Desk) -> None:
    building(desk.root, state="broken", reason="the disk was full")
    assert columns(desk.ttx("ls"))[0][1::4] == ["broken", "the disk was full; org/name main P150 ttnn-0.81.1"]


def test_on_a_terminal_a_line_is_as_wide_as_that(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    building(desk.root, state="broken", reason="x" * 100)
    whole = desk.ttx("ls").splitlines()
    assert len(whole[1]) > 100  # what is no terminal gets all of it
    for columns_there, cut in ((80, True), (72, True), (50, False), (0, False), (500, False)):
        monkeypatch.setattr("ttstack.cli.command.terminal_width", lambda columns_there=columns_there: columns_there)
        lines = desk.ttx("ls").splitlines()
        assert lines == ([whole[0], f"{whole[1][: columns_there - 3]}..."] if cut else whole)


def test_du_counts_shared_files_once(desk: Desk) -> None:
    one = complete(desk.root)
    two = complete(desk.root, inputs_of(mesh="P300"), seeded_from=one.name)
    (two / FIRST).unlink()
    (two / FIRST).hardlink_to(one / FIRST)
    block = (one / FIRST).stat().st_blocks * 512
    (view,) = desk.json("ls", "--du")
    sizes = {entry["name"]: entry["on_disk"] for entry in view["directories"]}
    assert [sizes[folder.name]["shared"] for folder in (one, two)] == [block, block]
    assert view["on_disk"] == sum(entry["own"] for entry in sizes.values()) + block
    out = desk.ttx("ls", "--du")
    assert f"{size(block)} shared" in out
    assert out.endswith(f"{size(view['on_disk'])} on the disk under {desk.root}\n")
    assert desk.json("ls")[0]["on_disk"] is None


def test_a_registry_that_cannot_be_believed_is_told_and_rebuilt(desk: Desk) -> None:
    folder = complete(desk.root)
    (desk.root / REGISTRY).write_text("")
    assert columns(desk.ttx("ls"))[0][1] == "complete"
    assert "ttx cache rebuild-registry" in desk.err
    out = desk.ttx("rebuild-registry")
    assert out.startswith(f"{desk.root}: 1 directories, 1 measured sizes; the one that was there is now ")
    desk.ttx("ls")
    assert "registry" not in desk.err
    assert folder.exists()


def test_a_registry_of_one_root_does_not_keep_the_other_from_its_own(desk: Desk) -> None:
    (desk.simulated.parent / "tree").mkdir(parents=True)
    complete(desk.simulated)
    desk.root.mkdir()
    (desk.root / LOCKS).write_text("no folder")
    out = desk.ttx("rebuild-registry", code=Exit.FAILED)
    assert out.startswith(f"{desk.simulated}: 1 directories")
    assert f"cannot make the folder of locks {desk.root / LOCKS}" in desk.err


def test_show_tells_all_of_one(desk: Desk) -> None:
    folder = complete(desk.root, inputs_of(env={"A": "1"}), checkpoint="abc", seeded_from="0" * 16)
    (folder / USED).touch()
    os.utime(folder / USED, (0, 0))
    page = dict(line.split("  ", 1) for line in desk.ttx("show", folder.name).splitlines())
    shown = {name.strip(): value.strip() for name, value in page.items()}
    assert shown["path"] == str(folder)
    assert shown["state"] == "complete"
    assert shown["used"].startswith("1970-01-01T00:00:00Z, ")
    assert shown["input env.A"] == "1"
    assert (shown["checkpoint"], shown["seeded from"]) == ("abc", "0" * 16)
    assert shown["files"] == "2 with 224 bytes (224 B)"
    (entry,) = desk.json("show", folder.name)
    assert entry["marker"]["inputs"] == inputs_of(env={"A": "1"})


def test_a_cache_that_is_not_there(desk: Desk) -> None:
    folder = complete(desk.root)
    for verb in ("show", "verify"):
        desk.ttx(verb, folder.name[:6], code=Exit.USAGE)
        assert f"did you mean {folder.name}" in desk.err
        desk.ttx(verb, "../cache", code=Exit.USAGE)


def test_odd_names_are_written_out(desk: Desk) -> None:
    (desk.root / "\x1b[31mred").mkdir(parents=True)
    assert "\x1b" not in desk.ttx("ls") + desk.ttx("show", "\x1b[31mred")


def test_why_tells_the_key_and_how_others_differ(desk: Desk) -> None:
    key = desk.key("try")
    assert f"has the key {key.key}, which is absent" in desk.ttx("why", "try")
    assert "there is no other cache of org/one" in desk.ttx("why", "try")
    own = complete(desk.root, dict(key.inputs))
    other = complete(desk.root, {**key.inputs, "mesh": "P300", "env": {"B": "1"}})
    complete(desk.root, inputs_of())  # of another model
    table = desk.json("why", "try")
    assert (table["key"], table["standing"], table["inputs"]) == (own.name, "complete", key.inputs)
    (seen,) = table["others"]
    assert seen["key"] == other.name
    assert [one["name"] for one in seen["differences"]] == ["env.B", "mesh"]
    lines = desk.ttx("why", "try").splitlines()
    assert lines[0] == f"arm try has the key {own.name}, which is complete"
    assert lines[-1].split() == ["mesh", str(key.inputs["mesh"]), "here,", "P300", "there"]
    desk.ttx("why", "absent", code=Exit.USAGE)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (28_700_000_000, "28.7 GB"), (5e15, "5000.0 TB")],
)
def test_sizes_for_people(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s ago"), (59, "59 s ago"), (60, "1 min ago"), (3600, "1 h ago"), (86400 * 3, "3 d ago")],
)
def test_times_for_people(seconds: float, text: str) -> None:
    assert ago(seconds) == text


def test_a_run_that_builds_is_named_once(desk: Desk) -> None:
    folder = building(desk.root, builder=builder(alive=True))
    places = replace(find_places(simulated=False, environ=os.environ), cache=desk.root)
    standing = standing_of(folder)
    build = Use("build", folder, "run 1 builds it")
    slot = Use("slot", folder, "run 1 (arm try)")
    from_it = Use("build", folder.with_name("0" * 16), "run 1 builds it from it")
    for uses, told in (
        ((build,), "in use: run 1 builds it"),
        ((slot, build), "in use: run 1 (arm try)"),
        ((slot, from_it), "in use: run 1 (arm try), run 1 builds it from it"),
    ):
        assert cache_view.row(cache_view.Seen(places, standing, uses), Sizes({}, 0))[5].split("; ")[0] == told
