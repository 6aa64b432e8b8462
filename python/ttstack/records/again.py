"""Digests of arms, pins and models, computed again from the JSON that a record holds of them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ttstack.arm.canonical import canonical_json
from ttstack.arm.digest import arm_digest, model_digest, pin_digest
from ttstack.arm.key import DIGITS
from ttstack.arm.types import Arm, Asked, Cards, Engine, Expect, Model, Overlay, Pin, Wheel

if TYPE_CHECKING:
    from collections.abc import Mapping

Data = TypeVar("Data")


class UnknownFormError(Exception):
    """What a record holds has not the form that this ttx knows: an older or a later one wrote it."""


def digests_of(asked: Mapping[str, Any]) -> dict[str, str]:
    """Compute ``arm_digest``, ``pin_digest`` and ``model_digest`` of what was asked. Raises UnknownFormError."""
    try:
        arm, pin, model = _arm(asked["arm"]), _pin(asked["pin"]), _made(Model, asked["model"])
        return {
            "arm_digest": arm_digest(Asked(arm, pin, model)),
            "pin_digest": pin_digest(pin),
            "model_digest": model_digest(model),
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise UnknownFormError(str(error)) from error


def cache_key_of(inputs: Mapping[str, Any]) -> str:
    """Compute a tensor cache's key from what went into it."""
    return sha256(canonical_json(inputs).encode()).hexdigest()[:DIGITS]


def _arm(table: Mapping[str, Any]) -> Arm:
    return _made(
        Arm,
        table,
        file=Path(_of(table, "file")),
        engine=_made(Engine, _of(table, "engine")),
        cards=_made(Cards, _of(table, "cards")),
        overlays=tuple(_made(Overlay, entry, source=Path(_of(entry, "source"))) for entry in _of(table, "overlays")),
        expect=_made(Expect, _of(table, "expect")),
    )


def _pin(table: Mapping[str, Any]) -> Pin:
    wheel = _of(table, "wheel")
    return _made(Pin, table, file=Path(_of(table, "file")), wheel=None if wheel is None else _made(Wheel, wheel))


def _of(table: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - any value of JSON
    if name not in table:
        raise UnknownFormError(f"there is no {name}")
    return table[name]


def _made(kind: type[Data], table: Mapping[str, Any], **parts: Any) -> Data:  # noqa: ANN401 - fields of ``kind``
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    strange = sorted(table.keys() - known.keys())
    lacking = sorted(
        name
        for name, field in known.items()
        if name not in table and field.default is MISSING and field.default_factory is MISSING
    )
    if strange or lacking:
        word = f"an unknown {strange[0]}" if strange else f"no {lacking[0]}"
        raise UnknownFormError(f"{kind.__name__.lower()} has {word}")
    return kind(**{**table, **parts})
