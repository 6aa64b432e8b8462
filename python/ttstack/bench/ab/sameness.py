"""Whether each run of an A/B asked for what its arm says, and what it is that A and B differ in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.records.log import RunRecord
    from ttstack.records.types import Json

# Which cards: the plan changes them. The others say nothing of what runs.
_NO_MATTER = ("cards", "arm.file", "arm.description", "pin.file", "pin.description")
# What follows from the rest, so that it would be told twice.
_DERIVED = ("arm_digest", "pin_digest", "model_digest", "argv")
# Arms that differ in nothing else are one arm: two that run side by side need these apart.
_BESIDE = ("arm.name", "arm.engine.port", "arm.cards.ids")


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs; None where one side has none."""

    key: str  # dotted: arm.engine.args.max-num-seqs
    a: Json
    b: Json


def asked_difference(one: RunRecord, two: RunRecord) -> tuple[Difference, ...]:
    """Say in what two runs asked for something else, apart from the cards that the plan gave them."""
    return _difference(one.raw_open["asked"], two.raw_open["asked"], _NO_MATTER)


def declared(a: RunRecord, b: RunRecord) -> tuple[Difference, ...]:
    """Say in what the arms of A and B differ: all that may differ between their runs."""
    found = _difference(a.raw_open["asked"], b.raw_open["asked"], (*_NO_MATTER, *_DERIVED))
    return tuple(each for each in found if not _under(each.key, ("arm.name",)))


def is_one_arm(a: RunRecord, b: RunRecord) -> bool:
    """Whether A and B are one arm, but for what two that run side by side need apart: its name, its port, its cards."""
    found = _difference(a.raw_open["asked"], b.raw_open["asked"], (*_NO_MATTER, *_DERIVED, *_BESIDE))
    return not found


def undeclared(a: RunRecord, b: RunRecord) -> tuple[Difference, ...]:
    """Say what differs in how the two runs of a pair were made, though no arm may declare it.

    The program that measured, the machine and its boot, and the image where both ask for the same one.
    """
    found = list(_difference(_made(a), _made(b), ()))
    same_pin = a.raw_open["asked"]["pin_digest"] == b.raw_open["asked"]["pin_digest"]
    images = [run.closed.observed.image if run.closed and run.closed.observed else None for run in (a, b)]
    if same_pin and images[0] != images[1]:
        found.append(Difference("image", *images))
    return tuple(found)


def _made(run: RunRecord) -> dict[str, Json]:
    host = run.raw_open["host"]
    names = ("hostname", "boot_id", "kernel", "cpu_count", "cpu_model", "python")
    return {
        "tool": run.raw_open["tool"],
        "host": {name: host.get(name) for name in names},
        "simulated": run.raw_open["simulated"],
    }


def _difference(one: Mapping[str, Json], two: Mapping[str, Json], but: tuple[str, ...]) -> tuple[Difference, ...]:
    left, right = dict(_flat(one, "")), dict(_flat(two, ""))
    keys = [key for key in sorted({*left, *right}) if not _under(key, but)]
    return tuple(Difference(key, left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key))


def _under(key: str, tops: tuple[str, ...]) -> bool:
    return any(key == top or key.startswith(f"{top}.") for top in tops)


def _flat(table: Mapping[str, Json], at: str) -> Iterator[tuple[str, Json]]:
    """Give every value of nested tables with its dotted key; an empty table has none."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{at}{name}.")
        else:
            yield f"{at}{name}", value
