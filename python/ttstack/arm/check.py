"""Holding a file against the table of what it may hold (``ttstack.arm.fields``)."""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ttstack.arm.canonical import DIGITS
from ttstack.arm.fields import ENV_NAME, EXACT, FLAG_KINDS, Field
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from ttstack.arm.layers import Report
    from ttstack.arm.lines import Key

DERIVED_ENV: dict[str, str] = {
    "MESH_DEVICE": "it is derived: write cards.mesh",
    "TT_VISIBLE_DEVICES": "it is derived from cards.count",
    "TT_METAL_VISIBLE_DEVICES": "it is derived from cards.count",
    "TT_CACHE_PATH": "it is derived from the cache key",
    "TT_METAL_CACHE": "it is derived from the arm's name and the pin",
}
"""Environment that ``ttstack.render`` derives (docs/reference/launch.md, "Environment", group 4)."""

SECRET_ENV = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "JWT_SECRET"})
"""Variables whose value must never stand in a file or on a command line."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("text", "path"), str),
    **dict.fromkeys(("texts", "tables"), list),
    **dict.fromkeys(("table", "env", "args", "tt", "kinds"), dict),
    **dict.fromkeys(("int", "one"), int),
    "number": (int, float),
    "bool": bool,
}


def check_table(fields: Mapping[str, Field], value: Mapping[str, object], at: Key, report: Report) -> None:
    """Report unknown keys, missing keys and values of the wrong form, all the way down."""
    for name, item in value.items():
        if name in fields:
            _check_field(fields[name], item, (*at, name), report)
        else:
            report.add((*at, name), "unknown key", did_you_mean(name, fields) or f"known: {', '.join(fields)}")
    for name, field in fields.items():
        if field.required and name not in value:
            report.missing((*at, name), f"missing: {field.doc}", f"expected {field.expected}")


def describe(value: object) -> str:
    """Name a TOML value for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return f"the date or time {value}"


def bad_character(text: str) -> str:
    """Return the first control character that no value may hold (line feed, tab and carriage return may), or ""."""
    return next((c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t\r"), "")


def path_fault(text: str) -> str:
    """Return the first character that docker's ``--mount`` cannot carry, or ""."""
    return next((c for c in text if c in ',"' or unicodedata.category(c) == "Cc"), "")


def _check_field(field: Field, value: object, at: Key, report: Report) -> None:
    wanted = _TYPES[field.kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and field.kind != "bool"):
        report.add(at, f"expected {field.expected}, not {describe(value)}")
    elif isinstance(value, dict):
        _check_dict(field, value, at, report)
    elif isinstance(value, list):
        _check_list(field, value, at, report)
    elif isinstance(value, str):
        _check_text(field, value, at, report)
    elif isinstance(value, int | float):
        _check_number(field, value, at, report)


def _check_number(field: Field, value: float, at: Key, report: Report) -> None:
    if field.kind == "number":
        check_value(value, at, report)
    if (field.kind == "one" and value != 1) or (field.kind == "int" and not field.low <= value <= field.high):
        report.add(at, f"expected {field.expected}, not {describe(value)}")
    elif field.kind == "number" and value < 0:
        report.add(at, "expected a number that is not negative")


def _check_dict(field: Field, value: Mapping[str, object], at: Key, report: Report) -> None:
    if field.kind == "table":
        check_table(field.fields, value, at, report)
    elif field.kind == "env":
        _check_env(field, value, at, report)
    elif field.kind == "kinds":
        for name, kind in value.items():
            if kind not in FLAG_KINDS:
                report.add((*at, name), f"expected one of {', '.join(FLAG_KINDS)}, not {describe(kind)}")
    else:  # args and tt: the kinds of their values depend on the engine, see ttstack.arm.rules
        for name, item in value.items():
            check_value(item, (*at, name), report)


def _check_list(field: Field, value: list[object], at: Key, report: Report) -> None:
    for index, item in enumerate(value):
        key = (*at, index)
        if field.kind == "tables":
            if isinstance(item, dict):
                check_table(field.fields, item, key, report)
            else:
                report.add(key, f"expected a table, not {describe(item)}")
        elif isinstance(item, str):
            _check_text(field, item, key, report)
        else:
            report.add(key, f"expected text, not {describe(item)}")


def _check_text(field: Field, value: str, at: Key, report: Report) -> None:
    bad = bad_character(value)
    if bad:
        report.add(at, f"holds the control character {bad!r}")
    elif field.choices and value not in field.choices:
        report.add(at, f"expected {field.expected}, not {describe(value)}", did_you_mean(value, field.choices))
    elif field.pattern and not re.fullmatch(field.pattern, value):
        report.add(at, f"expected {field.expected}, not {describe(value)}")
    elif field.kind == "path":
        fault = path_fault(value)
        if fault:
            report.add(at, f"the path holds {fault!r}, which a bind mount cannot carry")


def _check_env(field: Field, value: Mapping[str, object], at: Key, report: Report) -> None:
    for name, item in value.items():
        key = (*at, name)
        if name in field.fields:
            _check_field(field.fields[name], item, key, report)
        elif not re.fullmatch(ENV_NAME, name):
            report.add(key, f"{name!r} is not a name that an environment variable can have")
        elif name in DERIVED_ENV:
            report.add(key, "may not be set here", DERIVED_ENV[name])
        elif name in SECRET_ENV:
            report.add(key, "is a secret: its value may not stand in a file", "name it in engine.secrets")
        elif not isinstance(item, str):
            quoted = str(item).lower() if isinstance(item, bool) else str(item)
            scalar = isinstance(item, bool | int | float)
            report.add(key, f"expected text, not {describe(item)}", f'write it in quotes: "{quoted}"' if scalar else "")
        elif bad_character(item):
            report.add(key, f"holds the control character {bad_character(item)!r}")


def check_value(value: object, at: Key, report: Report) -> None:
    """Refuse what has no exact form on a command line or in JSON (docs/reference/launch.md)."""
    if isinstance(value, str) and bad_character(value):
        report.add(at, f"holds the control character {bad_character(value)!r}")
    elif isinstance(value, int) and abs(value) > EXACT:
        report.add(at, f"{value} is beyond what JSON carries exactly (2**53)")
    elif isinstance(value, float):
        _check_float(value, at, report)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if bad_character(name):
                report.add((*at, name), f"the name holds the control character {bad_character(name)!r}")
            check_value(item, (*at, name), report)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_value(item, (*at, index), report)
    elif isinstance(value, dt.date | dt.time):
        report.add(at, f"{describe(value)} has no form on a command line", f'write it in quotes: "{value}"')


def _check_float(value: float, at: Key, report: Report) -> None:
    if not math.isfinite(value):
        report.add(at, f"{value} is not a number that JSON carries")
    elif float(f"{value:.{DIGITS}g}") != value:
        hint = f"write {int(value)}" if value.is_integer() else f"write {value:.{DIGITS}g}"
        report.add(at, f"{value!r} has more than {DIGITS} significant digits", hint)
