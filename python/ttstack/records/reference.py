"""docs/reference/record.md, made from the schema and from the rule of ``quotable``.

``python -m ttstack.records.reference > ../docs/reference/record.md`` refreshes it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ttstack.markdown import code, paragraph, table
from ttstack.records.quotable import NO_ARM, reasons_against
from ttstack.records.schema import schema_document
from ttstack.records.types import Cell, Identity, IdentityCheck, Measured, MeasuredCheck
from ttstack.records.verify import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# Records

Made by `python -m ttstack.records.reference` from `ttstack/records/schema-v1.json` and from the rule that computes
`quotable`.

`records.jsonl` in the state folder ([files.md](files.md)) holds one JSON object per line, UTF-8. One line opens a run
before anything is touched, one closes it; both have the run's id. Refusals are runs, too. Lines are only ever added.

    ttx records ls
    ttx records show --json

How to compare, check, merge and query them: [records](../how-to/records.md).

Each line ends with `sum`, the CRC-32 of all bytes before `,"sum"`, in eight hex digits. A line whose sum holds is whole
and as the writer checked it, so a reader of thousands parses only those that it looks at closely. A line without one is
of before there were sums. One whose sum does not hold was changed after it was written, or spelled anew by another
program: it is read, and its numbers may not be quoted.

A reader takes the first opening and the first closing line of a run. It skips, counts and names what is not whole (a
killed writer, a full disk), what is not of the schema, what is of a later schema, and a closing line without an opening
one. Fields that it does not know are no fault: later versions may add some without changing what the others mean. A run
without a close is running as long as its owner lives, and aborted after that."""

_QUOTABLE = """\
Numbers may be quoted when nothing speaks against it. What does follows from the line itself; it is computed by the
writer, refused when it was set by hand, and computed again by the reader, who believes the stricter of the two. These
are all the reasons there are:"""

_VERIFIED = """\
`ttx records verify` computes again what a line says of itself, and names each line that breaks one of these rules. Of a
line whose arm, pin or model has a form that this version does not know, it says that not all is checked."""

_SIMULATED = """\
A simulated run may be quotable. The opening line says `simulated`, and whoever quotes such a number says so, too."""

_QUESTIONS = {
    "banner": "the log of this boot shows an expected banner; asked once for each",
    "cache_dir": "the folder that the engine names is the cache of the arm's key",
    "cache_intact": "no tensor file failed to load: ttnn makes such a file again with a mere warning (tt-metal#25693)",
    "environment": "the engine's first process, or its container, has the arm's environment",
    "image": "the container was made of the image that the arm's reference means now, by the image's own digest",
    "listener": "the port is listened on by a process of the engine, and by no other; a container publishes it itself",
    "served_root": "/v1/models names the arm's checkpoint",
    "served_id": "/v1/models names the model as the arm does",
    "max_model_len": "/v1/models names the length that the arm expects",
    "completion": "one real request is answered",
}
"""What ``ttstack.run.identify`` asks."""

_TITLES = {
    "open": "The line that opens a run",
    "close": "The line that closes a run",
}
_TYPES = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def reference_text() -> str:
    """Return the page."""
    parts = schema_document()["definitions"]
    lines = [_HEAD, ""]
    for name, part in parts.items():
        if "properties" in part:
            title = _TITLES.get(name) or code(name)
            lines += [f"{'##' if name in _TITLES else '###'} {title}", ""]
            if "description" in part:
                lines += [*paragraph(f"{part['description'][:1].upper()}{part['description'][1:]}."), ""]
            lines += [*table(("field", "value", "meaning"), _rows(part, "", parts)), ""]
    lines += ["## What is asked for the identity", ""]
    lines += [*table(("name", "yes when"), [(code(name), text) for name, text in _QUESTIONS.items()]), ""]
    lines += ["## When numbers may be quoted", "", _QUOTABLE, ""]
    lines += [*(f"- {reason}" for reason in _reasons()), "", _SIMULATED, ""]
    lines += ["## What is verified", "", _VERIFIED, ""]
    lines += table(("rule", "what holds"), [(code(name), text) for name, text in RULES.items()])
    return "\n".join(lines) + "\n"


def _rows(part: dict[str, Any], at: str, parts: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Describe the fields of an object, and of the objects inside it that have no name of their own."""
    for name, field in part["properties"].items():
        options = [field, *field.get("anyOf", ())]
        named = next((option["$ref"].rpartition("/")[2] for option in options if "$ref" in option), "")
        described = {**parts.get(named, {}), **field}
        yield code(at + name), _value(field, named, parts), str(described["description"])
        for option in options:
            if "properties" in option:
                yield from _rows(option, f"{at}{name}.", parts)
            if "properties" in option.get("items", {}):
                yield from _rows(option["items"], f"{at}{name}[].", parts)


def _value(field: dict[str, Any], named: str, parts: dict[str, Any]) -> str:
    """Say in words which values a field takes."""
    if "anyOf" in field:
        return " or ".join(
            _value(option, option.get("$ref", "").rpartition("/")[2], parts) for option in field["anyOf"]
        )
    if named and "properties" in parts[named]:
        return f"[{named}](#{named})"
    if named:
        return _value(parts[named], "", parts)
    values = field.get("enum", [field["const"]] if "const" in field else [])
    types = field.get("type", [])
    words = [_TYPES[name] for name in (types if isinstance(types, list) else [types])]
    return ", ".join("null" if value is None else code(str(value)) for value in values) or " or ".join(words) or "any"


def _reasons() -> list[str]:
    """Hear from the rule itself what it may say."""
    asked = Identity((IdentityCheck("NAME", ok=False), IdentityCheck("NAME", ok=None)))
    void = Cell("CELL", {}, reasons=("REASON",))
    measured = Measured("SUITE", (MeasuredCheck("NAME", ok=False),), requests=9, void=2, cells=(void,))
    fine = replace(measured, checks=(MeasuredCheck("NAME", ok=True),), void=0, cells=())
    cases = (
        *((outcome, Identity((IdentityCheck("NAME", ok=True),)), fine) for outcome in _outcomes() if outcome != "ok"),
        ("ok", None, None),
        ("ok", asked, measured),
        ("ok", NO_ARM, fine),
    )
    return list(dict.fromkeys(reason for case in cases for reason in reasons_against(*case)))


def _outcomes() -> list[Any]:
    return list(schema_document()["definitions"]["close"]["properties"]["outcome"]["enum"])


if __name__ == "__main__":
    sys.stdout.write(reference_text())
