from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from arm_kit import ARM, make_shelf

from ttstack.arm.errors import ArmError
from ttstack.arm.load import load
from ttstack.arm.shelf import arm_names, find_shelf

if TYPE_CHECKING:
    from pathlib import Path


def test_order_explicit_environment_parents_share(tmp_path: Path) -> None:
    folders = {name: make_shelf(_made(tmp_path / name)) for name in ("explicit", "environment", "parent", "share")}
    deep = _made(tmp_path / "parent" / "a" / "b")
    env = {"TTX_ARMS": str(folders["environment"].arms), "TTX_SHARE": str(tmp_path / "share")}
    assert find_shelf(folders["explicit"].arms, env, deep) == folders["explicit"]
    assert find_shelf(None, env, deep) == folders["environment"]
    assert find_shelf(None, {"TTX_SHARE": env["TTX_SHARE"]}, deep) == folders["parent"]
    assert find_shelf(None, {"TTX_SHARE": env["TTX_SHARE"]}, _made(tmp_path / "empty")) == folders["share"]


def test_a_relative_folder_is_relative_to_where_the_person_stands(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path)
    found = find_shelf(shelf.arms.relative_to(tmp_path), {}, tmp_path)
    assert found == shelf
    assert found.arms.is_absolute()


@pytest.mark.parametrize("environ", [{}, {"TTX_ARMS": "nowhere"}, {"TTX_SHARE": "nowhere"}])
def test_without_arms_the_error_says_what_to_do(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ArmError) as caught:
        find_shelf(None, environ, tmp_path)
    assert caught.value.hint
    assert caught.value.exit_code == 2
    assert caught.value.reason == "no_arms_folder"


def test_the_catalogue_is_not_an_arm(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path, b=ARM, a=ARM)
    (shelf.arms / "schema").mkdir()
    (shelf.arms / "notes.md").touch()
    assert arm_names(shelf) == ("a", "b")
    with pytest.raises(ArmError, match="unknown arm 'models'"):
        load("models", shelf)


def test_an_unknown_arm_names_the_nearest_or_all(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path, prod=ARM, other=ARM)
    with pytest.raises(ArmError, match="unknown arm 'prd'") as caught:
        load("prd", shelf)
    assert caught.value.hint == "did you mean prod"
    with pytest.raises(ArmError) as caught:
        load("zzz", shelf)
    assert "other, prod" in caught.value.hint


def test_a_path_is_an_arm_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = make_shelf(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(ARM)
    for name in ("mine.toml", "./mine.toml", str(tmp_path / "mine.toml")):
        arm = load(name, shelf).arm
        assert (arm.name, arm.file) == ("mine", tmp_path / "mine.toml")
    with pytest.raises(ArmError, match=r"there is no file .*/other-arm\.toml") as caught:
        load("other-arm.toml", shelf)
    assert "ttx arm ls" in caught.value.hint
    with pytest.raises(ArmError) as caught:
        load("./mien.toml", shelf)
    assert caught.value.hint == "did you mean mine.toml"


def test_a_pin_and_the_catalogue_are_no_arms(tmp_path: Path) -> None:
    shelf = make_shelf(tmp_path)
    pin = next(shelf.pins.glob("*.toml"))
    for file, what in ((pin, "a pin"), (shelf.models, "the catalogue of models")):
        with pytest.raises(ArmError, match=f"is {what}, not an arm"):
            load(str(file), shelf)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
