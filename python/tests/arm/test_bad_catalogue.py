"""Faults of models.toml and of pins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from arm_kit import ARM, MODELS, PIN, problems_of

if TYPE_CHECKING:
    from pathlib import Path

MODEL_LINES = [
    ("hff = 'a/b'", "tiny.hff", "unknown key"),
    ("hf = 'noslash'", "tiny.hf", "an id such as"),
    ("revision = 'a b'", "tiny.revision", "a revision"),
    ("served_name = ''", "tiny.served_name", "expected text"),
    ("env = { A = 1 }", "tiny.env.A", "expected text"),
    ("env = { MESH_DEVICE = 'x' }", "tiny.env.MESH_DEVICE", "may not be set"),
    ("weights_env = ['A-']", "tiny.weights_env[0]", "names of environment variables"),
    ("weights_env = ['TT_CACHE_PATH']", "tiny.weights_env[0]", "may not be named"),
    ("weights_env_in_name = ['A-']", "tiny.weights_env_in_name[0]", "names of environment variables"),
    ("weights_env_in_name = ['A']", "tiny.weights_env_in_name[0]", "not in weights_env"),
]


@pytest.mark.parametrize(("line", "key", "message"), MODEL_LINES)
def test_the_catalogue(tmp_path: Path, line: str, key: str, message: str) -> None:
    models = MODELS.replace("[tiny]\n", f"[tiny]\n{line}\n")
    (problem,) = problems_of(tmp_path, ARM, models=models)
    assert (problem.file.name, problem.line, problem.key) == ("models.toml", 9, key)
    assert message in problem.message


@pytest.mark.parametrize(
    ("models", "places"),
    [
        ("schema = 1\n[a]\n", [(2, "a.cache_gb"), (2, "a")]),
        ("schema = 1\n[a]\nhf = 'a/b'\ncache_gb = 1\n", [(2, "a.revision")]),
        ("schema = 1\n[a]\npath = 'x,y'\ncache_gb = -1\n", [(3, "a.path"), (4, "a.cache_gb")]),
        ("schema = 1\na = 1\n", [(2, "a")]),
        ("[a]\npath = 'x'\ncache_gb = 1\n", [(1, "schema")]),
        ("schema = 1\n[a.1]\npath = 'x'\ncache_gb = 1\n", [(2, "a.1")]),
    ],
)
def test_whole_catalogues(tmp_path: Path, models: str, places: list[tuple[int, str]]) -> None:
    found = problems_of(tmp_path, ARM, models=models)
    assert [(p.line, p.key) for p in found] == places
    if "[a.1]" in models:
        assert found[0].hint == 'a name with a dot is written ["a.1"]'


PIN_LINES = [
    ("imag = 'x'", "imag", "unknown key"),
    ("plugin = 'XYZ'", "plugin", "a commit"),
    ("tt_metal = 'abc'", "tt_metal", "a commit"),
    ("cache_writes_by_rename = 1", "cache_writes_by_rename", "true or false"),
    ("extra-flags = { a = 'integer' }", "extra-flags.a", "expected one of bool, switch, int"),
    ("wheel2 = 1", "wheel2", "unknown key"),
]


@pytest.mark.parametrize(("line", "key", "message"), PIN_LINES)
def test_pins(tmp_path: Path, line: str, key: str, message: str) -> None:
    (problem,) = problems_of(tmp_path, ARM, pin=f"{line}\n{PIN}")
    assert (problem.file.name, problem.line, problem.key) == ("current.toml", 1, key)
    assert message in problem.message


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"/opt/tt-metal"', "'opt'", (1, "home")),
        ('home = "/opt/tt-metal"', "", (1, "home")),
        ('"serve:1"', "'-v /:/'", (2, "image")),
        ('"cp312"', "'312'", (7, "wheel.python")),
        ("0" * 64, "0" * 63, (8, "wheel.sha256")),
        ('version = "0.81.1"', "", (4, "wheel.version")),
    ],
)
def test_pins_that_do_not_hold_together(tmp_path: Path, old: str, new: str, place: tuple[int, str]) -> None:
    assert old in PIN
    (problem,) = problems_of(tmp_path, ARM, pin=PIN.replace(old, new))
    assert problem.key == place[1]
    assert problem.file.name == "current.toml"
    if old.startswith(('"', "0")):
        assert problem.line == (3 if place[1] == "home" else place[0])


def test_problems_of_all_files_come_together(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path, ARM.replace("8000", "0"), models=MODELS + "x = 1\n", pin=PIN + "y = 1\n"
    )  # fmt: skip
    assert [(p.file.name, p.key) for p in found] == [
        ("x.toml", "engine.port"),
        ("models.toml", "by-id.x"),
        ("current.toml", "wheel.y"),
    ]
