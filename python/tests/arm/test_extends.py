from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from arm_kit import ARM, make_shelf

from ttstack.arm.errors import ArmFileError
from ttstack.arm.explain import explain
from ttstack.arm.load import load, resolve

if TYPE_CHECKING:
    from pathlib import Path

BASE = """\
schema = 1
description = "base"
pin = "current"
model = "qwen3.6-27b"
engine = { kind = "vllm", port = 8000, args = { seed = 1, hf-overrides = { a = 1, b = 2 } } }
cards.count = 2
[env]
A = "1"
[env.weights]
W = "1"
[expect]
banners = ["one", "two"]
"""


def test_tables_are_merged_and_lists_replaced(tmp_path: Path) -> None:
    middle = 'schema = 1\nextends = "base"\nenv.B = "2"\nengine.args.hf-overrides.b = 3\n'
    top = 'schema = 1\nextends = "middle"\n[expect]\nbanners = ["three"]\n[engine]\nport = 8001\n'
    arm = load("top", make_shelf(tmp_path, base=BASE, middle=middle, top=top)).arm
    assert (arm.name, arm.file.name, arm.description) == ("top", "top.toml", "base")
    assert arm.engine.args == {"seed": 1, "hf-overrides": {"a": 1, "b": 3}}
    assert (arm.engine.port, arm.cards.mesh) == (8001, "P150x2")
    assert (arm.env, arm.weights_env) == ({"A": "1", "B": "2"}, {"W": "1"})
    assert arm.expect.banners == ("three",)


def test_each_value_knows_the_file_and_line_that_it_stands_on(tmp_path: Path) -> None:
    top = 'schema = 1\nextends = "base"\n\nengine.args.seed = 2\nexpect.banners = ["x"]\n'
    rows = {row.key: row for row in explain(resolve("top", make_shelf(tmp_path, base=BASE, top=top)))}
    places = {key: (row.place.file.name, row.place.line) if row.place else None for key, row in rows.items()}
    assert places["engine.args.seed"] == ("top.toml", 4)
    assert places["expect.banners"] == ("top.toml", 5)
    assert places["engine.args.hf-overrides.a"] == ("base.toml", 5)
    assert places["env.weights.W"] == ("base.toml", 10)
    assert places["cards.mesh"] is None
    assert rows["cards.mesh"].value == "P150x2"
    assert places["engine.host"] is None
    assert not {"schema", "extends"} & rows.keys()


def test_a_scalar_over_a_table_leaves_no_stale_places(tmp_path: Path) -> None:
    top = 'schema = 1\nextends = "base"\ncards = 3\n'
    with pytest.raises(ArmFileError) as caught:
        load("top", make_shelf(tmp_path, base=BASE, top=top))
    assert [(p.file.name, p.line, p.key) for p in caught.value.problems] == [("top.toml", 3, "cards")]


def test_problems_point_into_the_file_where_the_value_stands(tmp_path: Path) -> None:
    base = BASE.replace("count = 2", "count = 3").replace('A = "1"', "A = 1")
    top = 'schema = 1\nextends = "base"\ncards.mesh = "P150x2"\nengine.prot = 1\n'
    with pytest.raises(ArmFileError) as caught:
        load("top", make_shelf(tmp_path, base=base, top=top))
    assert [(p.file.name, p.line, p.key) for p in caught.value.problems] == [
        ("top.toml", 3, "cards.mesh"),
        ("top.toml", 4, "engine.prot"),
        ("base.toml", 8, "env.A"),
    ]


def test_a_loop_is_named_whole(tmp_path: Path) -> None:
    arms = {name: f'schema = 1\n\nextends = "{other}"\n' for name, other in (("a", "b"), ("b", "c"), ("c", "b"))}
    with pytest.raises(ArmFileError) as caught:
        load("a", make_shelf(tmp_path, **arms))
    (problem,) = caught.value.problems
    assert (problem.file.name, problem.line, problem.key) == ("c.toml", 3, "extends")
    assert problem.message == "extends loop: a -> b -> c -> b"


def test_an_arm_that_extends_itself_through_a_link(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path, a='schema = 1\nextends = "b"\n')
    (shelf.arms / "b.toml").symlink_to("a.toml")
    with pytest.raises(ArmFileError, match="extends loop: a -> b"):
        load("a", shelf)


def test_when_the_base_is_missing_nothing_is_called_missing(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path, prod=ARM, x='schema = 1\nextends = "prd"\n[engine]\nprt = 1\n[cards]\nmesh="P15"\n')
    with pytest.raises(ArmFileError) as caught:
        load("x", shelf)
    assert [(p.key, p.hint) for p in caught.value.problems] == [
        ("extends", "did you mean prod"),
        ("engine.prt", "did you mean port"),
        ("cards.mesh", "did you mean P150"),
    ]


@pytest.mark.parametrize(
    ("base", "place"),
    [
        ("schema = 1\nx = [", ("base.toml", 2, "")),
        (ARM.replace("schema = 1", "schema = 2"), ("base.toml", 1, "schema")),
        (ARM.replace("schema = 1\n", ""), ("base.toml", 1, "schema")),
        (ARM.replace("schema = 1\n", "schema = true\n"), ("base.toml", 1, "schema")),
        ("extends = 3\n" + ARM, ("base.toml", 1, "extends")),
    ],
)
def test_faults_of_the_base(tmp_path: Path, base: str, place: tuple[str, int, str]) -> None:
    with pytest.raises(ArmFileError) as caught:
        load("x", make_shelf(tmp_path, base=base, x='schema = 1\nextends = "base"\n'))
    assert [(p.file.name, p.line, p.key) for p in caught.value.problems] == [place]


def test_the_schema_is_every_files_own(tmp_path: Path) -> None:
    with pytest.raises(ArmFileError) as caught:
        load("x", make_shelf(tmp_path, base=ARM, x='extends = "base"\n'))
    assert [(p.file.name, p.line, p.key) for p in caught.value.problems] == [("x.toml", 1, "schema")]


def test_names_are_looked_up_beside_the_file_then_on_the_shelf(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path, base=ARM, other=ARM)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "base.toml").write_text(ARM.replace("8000", "9000"))
    (folder / "near.toml").write_text('schema = 1\nextends = "base"\n')
    (folder / "far.toml").write_text('schema = 1\nextends = "other"\n')
    (folder / "path.toml").write_text('schema = 1\nextends = "../arms/base.toml"\n')
    ports = [load(str(folder / f"{name}.toml"), shelf).arm.engine.port for name in ("near", "far", "path")]
    assert ports == [9000, 8000, 8000]


def test_an_overlay_is_relative_to_the_file_that_it_is_written_in(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path, x=f'schema = 1\nextends = "{tmp_path}/mine/base.toml"\n')
    (tmp_path / "mine" / "tree").mkdir(parents=True)
    (tmp_path / "mine" / "base.toml").write_text(ARM + "[[overlay]]\nsource = 'tree'\ntarget = 'models'\n")
    assert load("x", shelf).arm.overlays[0].source == tmp_path / "mine" / "tree"


def test_what_is_missing_is_missing_where_the_topmost_table_stands(tmp_path: Path) -> None:
    (tmp_path / "arms").mkdir()
    base = ARM.replace("port = 8000\n", "") + "[[overlay]]\nsource = '.'\ntarget = 'a'\n"
    top = 'schema = 1\nextends = "base"\n[engine]\nruntime = "podman"\n[[overlay]]\nsource = "."\n'
    with pytest.raises(ArmFileError) as caught:
        load("top", make_shelf(tmp_path, base=base, top=top))
    assert [(p.file.name, p.line, p.key) for p in caught.value.problems] == [
        ("top.toml", 3, "engine.port"),
        ("top.toml", 5, "overlay[0].target"),
    ]
