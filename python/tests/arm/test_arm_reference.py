from __future__ import annotations

import re
import shutil
import tomllib
from typing import TYPE_CHECKING

from arm_kit import ROOT

from ttstack.arm.catalogue_fields import MODEL, PIN
from ttstack.arm.fields import ARM, Field
from ttstack.arm.load import load
from ttstack.arm.reference import reference_text
from ttstack.arm.shelf import Shelf
from ttstack.markdown import code, paragraph, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PAGE = ROOT / "docs" / "reference" / "arm.md"


def _leaves(fields: Mapping[str, Field], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    for name, field in fields.items():
        yield from _leaves(field.fields, (*at, name)) if field.fields else [((*at, name), field)]


def _parts(page: str) -> tuple[str, str, str]:
    """Give what stands under the headings of the arm, the pin and the model."""
    found = re.split(r"^## .*$", page, flags=re.MULTILINE)
    assert len(found) == 4
    return found[1], found[2], found[3]


def _example(part: str) -> str:
    return "\n".join(re.findall(r"^```toml\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL))


def test_the_page_is_fresh() -> None:
    stale = "refresh it, in python/: python -m ttstack.arm.reference > ../docs/reference/arm.md"
    assert PAGE.read_text(encoding="utf-8") == reference_text(), stale


def test_the_examples_have_every_key() -> None:
    arm, pin, model = (tomllib.loads(_example(part)) for part in _parts(reference_text()))
    (entry,) = model.values()
    arm["overlay"] = arm["overlay"][0]
    for fields, data in ((ARM, arm), (PIN, pin), (MODEL, entry)):
        for path, _ in _leaves(fields):
            value = data
            for name in path:
                assert name in value, f"no example of {'.'.join(path)}"
                value = value[name]


def test_the_examples_are_an_arm_that_loads(tmp_path: Path) -> None:
    arm, pin, model = map(_example, _parts(reference_text()))
    arms, pins = tmp_path / "arms", tmp_path / "pins"
    arms.mkdir()
    pins.mkdir()
    shutil.copy(ROOT / "arms" / "prod.toml", arms)
    (arms / "mine.toml").write_text(arm)
    (arms / "models.toml").write_text(f"schema = 1\n{model}")
    (pins / "current.toml").write_text(pin)
    (tmp_path / "tt-metal" / "models" / "demos" / "qwen36").mkdir(parents=True)
    asked = load("mine", Shelf(arms, pins))
    assert asked.arm.overlays
    assert asked.arm.weights_env
    assert asked.pin.wheel
    assert asked.model.weights_env


def test_what_holds_when_a_key_is_absent_is_told() -> None:
    arm, pin, model = _parts(reference_text())
    for part, fields in ((arm, ARM), (pin, PIN), (model, MODEL)):
        for path, field in _leaves(fields):
            (row,) = re.findall(rf"^\| `{re.escape(path[-1])}` \|.*\|.*\|.*\|$", part, flags=re.MULTILINE)
            absent = row.split(" | ")[2]
            wanted = "required" if field.required else field.otherwise
            assert absent == wanted if wanted else absent in {"nothing", f"`{_toml(field.default)}`"}
            assert field.doc in row


def _toml(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value).replace("'", '"')


def test_a_bar_does_not_end_a_cell() -> None:
    assert table(("a",), [("x|y",)]) == ["| a |", "| --- |", r"| x\|y |"]


def test_code_can_hold_a_backtick() -> None:
    assert (code("a"), code("a`b")) == ("`a`", "`` a`b ``")


def test_flags_are_not_broken_at_their_dashes() -> None:
    lines = paragraph("`max-num-seqs`, " * 40, bullet=True)
    assert all(line.startswith(("- `max-num-seqs`", "  `max-num-seqs`")) for line in lines)
    assert max(map(len, lines)) <= 120
