from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import fastjsonschema
import pytest
from arm_kit import ARM, ROOT, in_section
from test_bad_input import LINES

from ttstack.arm.fields import ARM as FIELDS
from ttstack.arm.flags import REFUSED, SIM, TT, known_flags
from ttstack.arm.schema import arm_schema, schema_text

if TYPE_CHECKING:
    from collections.abc import Callable

SHIPPED = sorted(path for path in (ROOT / "arms").glob("*.toml") if path.stem != "models")

# What needs more than one file or more than one value: only `ttx arm check` can tell.
BEYOND_A_SCHEMA = (
    "extends", "engine.args.sim-token-ms", "cards.ids[1]", "cards.mesh", "cards.ids", "expect.banners",
    "engine.secrets", "engine.args.max-model-len", "engine.args.watermark", "engine.args.seed", "engine.args.dtype",
    "env.A", "engine.args.hf-overrides",
)  # fmt: skip


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], Any]:
    validator: Callable[[Any], Any] = fastjsonschema.compile(arm_schema())
    return validator


def test_the_shipped_schema_is_fresh() -> None:
    shipped = (ROOT / "arms" / "schema" / "arm.json").read_text()
    assert shipped == schema_text(), "refresh it: python -m ttstack.arm.schema > arms/schema/arm.json"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_arms_name_and_pass_it(path: Any, validate: Callable[[Any], Any]) -> None:  # noqa: ANN401 - a parameter
    text = path.read_text()
    assert text.startswith("#:schema ./schema/arm.json\n")
    validate(tomllib.loads(text))


def test_an_arm_of_another_engine_has_any_flag(validate: Callable[[Any], Any]) -> None:
    arm = tomllib.loads(ARM.replace('"vllm"', '"asgi"').replace("port = 8000", "port = 8000\nargs.anything = 1"))
    validate(arm)
    arm["engine"]["kind"] = "vllm"
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate(arm)


@pytest.mark.parametrize("row", LINES, ids=[row[1] or row[0] for row in LINES])
def test_it_refuses_what_the_validation_refuses(row: tuple[str, ...], validate: Callable[[Any], Any]) -> None:
    section, line, key, message, _ = row
    if message.startswith(("is not TOML", "the date or time")) or "07:32" in line:
        pytest.skip("JSON has no such value")
    data = tomllib.loads(in_section(section, line))
    try:
        validate(data)
    except fastjsonschema.JsonSchemaException:
        return
    assert key.startswith(BEYOND_A_SCHEMA), f"the schema lets {line!r} pass"


def test_everything_is_described() -> None:
    def undescribed(schema: dict[str, Any], at: str) -> list[str]:
        found: list[str] = []
        for name, inner in schema.get("properties", {}).items():
            found += [] if inner.get("description") else [f"{at}.{name}"]
            found += undescribed(inner, f"{at}.{name}")
        return found + (undescribed(schema["items"], f"{at}[]") if "items" in schema else [])

    assert undescribed(arm_schema(), "") == []


def test_the_tables_are_in_the_schema() -> None:
    schema = arm_schema()
    engine = schema["properties"]["engine"]["properties"]
    assert list(schema["properties"]) == list(FIELDS)
    assert set(engine["args"]["properties"]) == set(known_flags("vllm") or ()) | set(SIM)
    assert set(engine["tt"]["properties"]) == set(TT)
    assert not REFUSED.keys() & engine["args"]["properties"].keys()
    json.loads(schema_text())
