"""Why two caches are two: the inputs of their keys that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ttstack.arm.canonical import canonical_json


@dataclass(frozen=True, slots=True)
class Difference:
    """One input. A side that has none of that name is None."""

    name: str  # such as ``mesh``, or ``env.QWEN36_LM_HEAD_BF4``
    asked: object
    there: object


def differences(asked: Mapping[str, object], there: Mapping[str, object]) -> tuple[Difference, ...]:
    """List the inputs that differ, sorted by name; tables are looked into. () exactly when the keys are equal."""
    ours, theirs = flat(asked), flat(there)
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        one, other = (canonical_json(table[name]) if name in table else None for table in (ours, theirs))
        # That a table is empty on one side is told by what it has on the other.
        if one != other and not any(
            table.get(name) == {} and _has_more(name, ours | theirs) for table in (ours, theirs)
        ):
            found.append(Difference(name, ours.get(name), theirs.get(name)))
    return tuple(found)


def _has_more(name: str, table: Mapping[str, object]) -> bool:
    return any(each.startswith(f"{name}.") for each in table)


def flat(table: Mapping[str, object], above: str = "") -> dict[str, object]:
    """Name each input by its path; an empty table is one, too."""
    found: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{above}{name}.")
        else:
            found[f"{above}{name}"] = value
    return found
