"""JSON Schema (draft-07) of an arm, made from the tables that the validation uses.

``python -m ttstack.arm.schema > arms/schema/arm.json`` refreshes the copy that editors read.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ttstack.arm.check import DERIVED_ENV, SECRET_ENV
from ttstack.arm.fields import ARM, ENV_NAME, Field
from ttstack.arm.flags import DOC, SIM, TT, known_flags
from ttstack.arm.mesh import LITERAL, MESHES

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]

_SCALAR: Schema = {"type": ["string", "number"]}
_VALUES: dict[str, Schema] = {
    "bool": {"type": "boolean"},
    "switch": {"const": True},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "list": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": 1}]},
    "append": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "json": {"type": "object"},
}


def arm_schema() -> Schema:
    """Return the schema as a JSON value.

    An arm that extends another may leave out what it inherits, so only ``schema`` is required of every file.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "an arm of ttstack",
        **_table(ARM, required=("schema",)),
    }


def schema_text() -> str:
    """Return the schema as the file that is shipped."""
    return json.dumps(arm_schema(), indent=2, ensure_ascii=False) + "\n"


def _table(fields: Mapping[str, Field], required: tuple[str, ...] = ()) -> Schema:
    table: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _field(name, field) for name, field in fields.items()},
    }
    if required:
        table["required"] = list(required)
    return table


def _field(name: str, field: Field) -> Schema:
    schema: Schema = {"description": field.doc + (f"; by default {field.otherwise}" if field.otherwise else "")}
    if field.default not in (None, ""):
        schema["default"] = field.default
    return schema | _content(name, field)


def _content(name: str, field: Field) -> Schema:  # noqa: PLR0911 - one line for each kind of field
    if name == "mesh":
        return {"anyOf": [{"enum": list(MESHES)}, {"type": "string", "pattern": f"^{LITERAL}$"}]}
    match field.kind:
        case "one":
            return {"const": 1}
        case "int":
            return {"type": "integer", "minimum": field.low, "maximum": field.high}
        case "texts":
            return {"type": "array", "items": _text(field)}
        case "table":
            return _table(field.fields) | (_strict_args() if name == "engine" else {})
        case "tables":
            required = tuple(key for key, inner in field.fields.items() if inner.required)
            return {"type": "array", "items": _table(field.fields, required)}
        case "env":
            return _environment(field)
        case "args":
            return _args()
        case "tt":
            return {"type": "object", "additionalProperties": False, "properties": _options()}
        case _:
            return _text(field)


def _text(field: Field) -> Schema:
    if field.choices:
        return {"type": "string", "enum": list(field.choices)}
    return {"type": "string"} | ({"pattern": f"^({field.pattern})$"} if field.pattern else {})


def _environment(field: Field) -> Schema:
    refused = "|".join(sorted({*DERIVED_ENV, *SECRET_ENV}))
    return {
        "type": "object",
        "properties": {name: _field(name, inner) for name, inner in field.fields.items()},
        "propertyNames": {"pattern": f"^(?!({refused})$){ENV_NAME}$"},
        "additionalProperties": {"type": "string"},
    }


def _flags() -> dict[str, str]:
    """Return the flags of both engines whose flags are known."""
    return dict(known_flags("vllm") or {}) | dict(known_flags("sim") or {})


def _args() -> Schema:
    flags = {name: {"description": _flag_doc(name), **_VALUES[kind]} for name, kind in sorted(_flags().items())}
    return {"type": "object", "properties": flags}


def _strict_args() -> Schema:
    """Refuse unknown flags, but for engines whose flags are not known.

    A pin can add flags; only ``ttx arm check`` knows those.
    """
    other = {"properties": {"kind": {"enum": ["asgi", "demo"]}}, "required": ["kind"]}
    known = {"properties": {"args": {"propertyNames": {"enum": sorted(_flags())}}}}
    return {"if": other, "else": known}


def _flag_doc(name: str) -> str:
    doc = DOC.get(name, "")
    return doc if name in SIM else f"vLLM's --{name}" + (f": {doc}" if doc else "")


def _options() -> Schema:
    return {
        name: {"description": option.doc, **_VALUES[option.kind]}
        | ({"enum": list(option.choices)} if option.choices else {})
        for name, option in TT.items()
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text())
