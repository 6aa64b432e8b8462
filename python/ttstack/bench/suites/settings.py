"""A suite's settings: a frozen dataclass whose fields say what they mean, read from TOML and from ``KEY=VALUE``."""

from __future__ import annotations

import math
import tomllib
from dataclasses import MISSING, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ttstack.errors import UsageError
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

Value = TypeVar("Value")
Settings = TypeVar("Settings")
_PAGE = "see docs/reference/suites.md"
_BOOLS = {"true": True, "false": False}


def setting(default: Value, about: str, *, least: float | None = None) -> Value:
    """Declare a setting: what it means, and the least that it may be (each of several, where it holds several)."""
    return field(default=default, metadata={"about": about, "least": least})


def read_settings(kind: type[Settings], suite: str, table: Mapping[str, object], words: Sequence[str] = ()) -> Settings:
    """Make settings: the defaults, then a table of TOML, then ``KEY=VALUE`` words. Raises UsageError."""
    hints = get_type_hints(kind)
    given: dict[str, object] = {}
    for key, value in table.items():
        given[key] = _typed(suite, key, value, _hint(hints, suite, key))
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise _bad(f"{word!r} sets nothing", "such as: --set runs=5")
        given[key] = _typed(suite, key, _parsed(text, _hint(hints, suite, key)), hints[key])
    for entry in fields(cast("Any", kind)):
        _check_least(suite, entry.name, given.get(entry.name, entry.default), entry.metadata["least"])
    return kind(**given)


def read_table(path: Path, suite: str, known: Iterable[str]) -> dict[str, object]:
    """Read a suite's table from a file that has one for each suite that it sets. Raises UsageError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _bad(f"cannot read {path}: {error.strerror}", "a TOML file with tables such as [infbench]") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(f"{path} is not TOML: {error}", "tables such as [infbench], with lines such as runs = 5") from error
    names = list(known)
    for name, table in tables.items():
        if name not in names or not isinstance(table, dict):
            hint = did_you_mean(name, names) or f"its tables are named as suites are: {', '.join(names)}"
            raise _bad(f"{path}: {name!r} is no table of a suite", hint)
    return cast("dict[str, object]", tables.get(suite, {}))


def describe(kind: type[object]) -> list[tuple[str, str, str]]:
    """Give each setting's name, default (as it would be set) and meaning."""
    rows = []
    for entry in fields(cast("Any", kind)):
        assert entry.default is not MISSING  # noqa: S101 - ``setting`` gives one
        rows.append((entry.name, shown(entry.default), str(entry.metadata["about"])))
    return rows


def shown(value: object) -> str:
    """Write a value as ``--set`` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bad(message: str, hint: str) -> UsageError:
    return UsageError(message, hint=hint, reason="bad_setting")


def _hint(hints: Mapping[str, object], suite: str, key: str) -> object:
    if key not in hints:
        hint = did_you_mean(key, hints) or f"it has: {', '.join(hints)}"
        raise _bad(f"suite {suite} has no setting {key!r}", hint)
    return hints[key]


def _inner(hint: object) -> type | None:
    """Give the type of each entry where a setting holds several."""
    return cast("type", get_args(hint)[0]) if get_origin(hint) is tuple else None


def _parsed(text: str, hint: object) -> object:
    """Read what a word says; what cannot be read stays text, which ``_typed`` refuses where it must."""
    inner = _inner(hint)
    if inner is not None:
        return [_parsed(part.strip(), inner) for part in text.split(",") if part.strip()]
    if hint is bool:
        return _BOOLS.get(text.lower(), text)
    if hint in {int, float}:
        try:
            return int(text) if hint is int else float(text)
        except ValueError:
            return text
    return text


def _typed(suite: str, key: str, value: object, hint: object) -> object:
    inner = _inner(hint)
    if inner is not None:
        if not isinstance(value, list | tuple):
            raise _bad(f"{key} of suite {suite} is a list of values, not {value!r}", f"such as: {key}=1,2,4")
        return tuple(_typed(suite, key, entry, inner) for entry in value)
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint or (isinstance(value, float) and not math.isfinite(value)):
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        raise _bad(f"{key} of suite {suite} is {names[cast('type', hint)]}, not {value!r}", _PAGE)
    return value


def _check_least(suite: str, key: str, value: object, least: float | None) -> None:
    if least is None:
        return
    for entry in value if isinstance(value, tuple) else (value,):
        if cast("float", entry) < least:
            raise _bad(f"{key} of suite {suite} is at least {least:g}, not {shown(entry)}", _PAGE)
