"""The schema as code: the one gate that every written and every read line goes through."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def schema_document() -> dict[str, Any]:
    """Return ``schema-v1.json``: JSON Schema, draft 7."""
    text = files("ttstack.records").joinpath("schema-v1.json").read_text(encoding="utf-8")
    return cast("dict[str, Any]", json.loads(text))


def violation(line: Mapping[str, object], *, strict: bool) -> str | None:
    """Say what is wrong with a line, or None.

    ``strict`` is for writers: an unknown field is a fault. A reader allows unknown fields, since a later ttx may have
    added some without changing what the others mean (``x-added`` in the schema, with a default in ``types.py``); any
    other change gets a new schema number.
    """
    from fastjsonschema import JsonSchemaValueException  # noqa: PLC0415 - late, it is not needed by most verbs

    try:
        _validator(strict)(line)
    except JsonSchemaValueException as error:
        return str(error.message)
    return None


@cache
def _validator(strict: bool) -> Callable[[object], object]:  # noqa: FBT001 - private, a cache key
    import fastjsonschema  # noqa: PLC0415 - as above

    document = schema_document()
    compiled = fastjsonschema.compile(document if strict else _open_ended(document), use_default=False)
    return cast("Callable[[object], object]", compiled)


def _open_ended(node: Any) -> Any:  # noqa: ANN401 - any part of a JSON document
    """Loosen the schema for readers: fields may be unknown, and what has ``x-added`` may be absent from older lines."""
    if isinstance(node, list):
        return [_open_ended(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    loose = {
        key: _open_ended(entry) for key, entry in node.items() if not (key == "additionalProperties" and entry is False)
    }
    if isinstance(node.get("required"), list) and isinstance(node.get("properties"), dict):
        added = {name for name, field in node["properties"].items() if field.get("x-added")}
        loose["required"] = [name for name in node["required"] if name not in added]
    return loose
