"""``ttx cache why``: an arm's key, what went into it, and how other caches of its model differ."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ttstack.arm.canonical import canonical_json
from ttstack.arm.key import cache_key
from ttstack.cache.survey import survey
from ttstack.cache.why import differences, flat
from ttstack.cli.cache_view import summary
from ttstack.cli.hosts import all_places
from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.arm.types import Asked
    from ttstack.cache.types import Directory


def table(asked: Asked) -> dict[str, Any]:
    """Say it for programs."""
    key = cache_key(asked)
    own, others = _look(asked)
    return {
        "arm": asked.arm.name,
        "key": key.key,
        "inputs": dict(key.inputs),
        "root": str(_root(asked)),
        "standing": "absent" if own is None else own.standing,
        "text": "" if own is None else own.text,
        "others": [
            {
                "key": other.key,
                "standing": other.standing,
                "differences": [
                    {"name": one.name, "arm": one.asked, "cache": one.there}
                    for one in differences(key.inputs, {} if other.marker is None else other.marker.inputs)
                ],
            }
            for other in others
        ],
    }


def lines(asked: Asked) -> Iterator[str]:
    """Say it for people."""
    return map(printable, _lines(asked))


def _lines(asked: Asked) -> Iterator[str]:
    key = cache_key(asked)
    own, others = _look(asked)
    state = "absent: the next start builds it" if own is None else f"{own.standing}{f': {own.text}' * bool(own.text)}"
    yield f"arm {asked.arm.name} has the key {key.key}, which is {state}"
    inputs = flat(key.inputs)
    width = max(map(len, inputs))
    for name, value in inputs.items():
        yield f"  {name:<{width}}  {_value(value)}"
    for other in others:
        if other.marker is None:
            continue
        yield f"{other.key} ({other.standing}, arm {other.marker.builder.arm}) differs in"
        for one in differences(key.inputs, other.marker.inputs):
            yield f"  {one.name:<{width}}  {_value(one.asked)} here, {_value(one.there)} there"
    if not others:
        yield f"there is no other cache of {summary({'model': key.inputs['model']})} under {_root(asked)}"


def _value(value: object) -> str:
    return "nothing" if value is None else value if isinstance(value, str) and value else canonical_json(value)


def _root(asked: Asked) -> Any:  # noqa: ANN401 - a path, which only type checkers need imported
    simulated = asked.arm.engine.kind == "sim"
    found = [places for places in all_places(os.environ) if places.simulated == simulated]
    if found:
        return found[0].cache
    from ttstack.host.places import find_places  # noqa: PLC0415 - a host that was never made

    return find_places(simulated=True, environ=os.environ).cache


def _look(asked: Asked) -> tuple[Directory | None, list[Directory]]:
    """Find the arm's own cache, and the others of its model."""
    key = cache_key(asked)
    found = survey(_root(asked))
    own = next((one for one in found if one.key == key.key and one.path.parent == _root(asked)), None)
    others = [
        one
        for one in found
        if one.marker is not None
        and one.marker.kind == "tensors"
        and one.key != key.key
        and one.marker.inputs.get("model") == key.inputs["model"]
    ]
    return own, others
