"""Reading the fields of a request's JSON body, with errors as vLLM gives them."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from ttstack.sim.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_JSON = "1 validation error: {'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error'}"


def read(body: bytes) -> Mapping[str, object]:
    """Body to its JSON object. Raises ApiError."""
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"{_NOT_JSON[:-1]}, 'ctx': {type(error).__name__!r}}}") from error
    if not isinstance(value, dict):
        raise ApiError(400, "1 validation error: {'loc': ('body',), 'msg': 'Input should be a valid dictionary'}")
    return value


def wrong(name: str, what: str) -> ApiError:
    """Give the error for a field that is not what it should be."""
    return ApiError(
        400, f"1 validation error: {{'loc': ('body', '{name}'), 'msg': 'Input should be {what}'}}", param=name
    )


def whole(body: Mapping[str, object], name: str, default: int | None, least: int) -> int | None:
    """Whole number of at least ``least``; null is the default. Raises ApiError."""
    value = body.get(name)
    if value is None:
        return default
    if type(value) is not int:
        raise wrong(name, "a valid integer")
    if value < least:
        raise ApiError(400, f"{name} must be at least {least}, got {value}.", param=name)
    return value


def number(body: Mapping[str, object], name: str, default: float) -> float:
    """Finite number of at least 0; null is the default. Raises ApiError."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(name, "a valid number")
    if not (math.isfinite(value) if isinstance(value, float) else True) or value < 0:
        raise ApiError(400, f"{name} must be non-negative, got {value}.", param=name)
    return float(min(value, 1e300))


def switch(body: Mapping[str, object], name: str) -> bool:
    """Boolean; absent or null is false. Raises ApiError."""
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong(name, "a valid boolean")
    return value


def text(value: object, name: str) -> str:
    """Text that can be encoded. Raises ApiError."""
    if not isinstance(value, str):
        raise wrong(name, "a valid string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(name, "a valid string, without lone surrogates") from error
    return value


def stop(body: Mapping[str, object]) -> tuple[str, ...]:
    """Stop strings: null, one or a list. Raises ApiError."""
    value = body.get("stop")
    if value is None:
        return ()
    words = tuple(text(word, "stop") for word in (value if isinstance(value, list) else [value]))
    if "" in words:
        raise ApiError(400, "stop cannot contain an empty string.", param="stop")
    return words
