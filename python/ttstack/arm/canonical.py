"""One spelling for every value, so that equal meanings have equal bytes (docs/reference/launch.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

DIGITS = 6
"""Significant digits that a number may have: what C's ``%g`` writes, in Python as in Nix."""


def number(value: float) -> str:
    """Spell a number: an integral value as an integer, any other as ``%g`` does.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    if isinstance(value, int):
        return str(int(value))
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    return str(int(value)) if value.is_integer() else f"{value:.{DIGITS}g}"


def canonical_json(value: object) -> str:
    """Compact JSON, keys sorted by code point, non-ASCII kept, numbers as ``number`` spells them.

    Raises TypeError for what JSON does not have, ValueError for NaN and infinities.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("the keys of a JSON object are text")
        members = (f"{canonical_json(key)}:{canonical_json(value[key])}" for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    raise TypeError(f"{type(value).__name__} has no JSON form")
