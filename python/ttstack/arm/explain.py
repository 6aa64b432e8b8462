"""Every value of a resolved arm with the place that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.arm.fields import ARM
from ttstack.arm.lines import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.arm.layers import Place
    from ttstack.arm.lines import Key
    from ttstack.arm.load import Resolved


@dataclass(frozen=True, slots=True)
class Row:
    """One value; ``place`` is None for a default."""

    key: str
    value: object
    place: Place | None


def explain(resolved: Resolved) -> tuple[Row, ...]:
    """List what the arm says, in the order of the format, and the defaults that fill the rest."""
    arm, layers = resolved.asked.arm, resolved.layers
    derived: dict[Key, object] = {
        ("engine", "runtime"): arm.engine.runtime,
        ("cards", "count"): arm.cards.count,
        ("cards", "mesh"): arm.cards.mesh,
    }
    for table, field in ARM.items():
        for name, inner in field.fields.items():
            if inner.default is not None:
                derived[table, name] = inner.default
    written = {key: value for key, value in _leaves(layers.data, ()) if key not in {("schema",), ("extends",)}}
    rows = [Row(dotted(key), value, layers.place(key)) for key, value in written.items()]
    rows += [Row(dotted(key), value, None) for key, value in derived.items() if key not in written]
    order = list(ARM)
    return tuple(sorted(rows, key=lambda row: order.index(row.key.partition(".")[0].partition("[")[0])))


def _leaves(value: object, at: Key) -> Iterator[tuple[Key, object]]:
    """Walk tables, and lists of tables; a list of anything else is one value."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, (*at, name))
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*at, index))
    else:
        yield at, value
