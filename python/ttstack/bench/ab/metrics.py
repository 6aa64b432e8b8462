"""Metrics of a boot: one value each, and which way is better."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Literal

from ttstack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ttstack.records.types import Measured

Better = Literal["lower", "higher"]

PRIMARY: Mapping[str, str] = {
    "smoke": "request_s",
    "sweep32k": "prefill_ms_per_token",
    "infbench": "b1/tg_ms_per_token",
    "soak": "mixed/tg_ms_per_token",
}
"""Suite -> the metric that has the verdict when none is named."""

_MOMENT = "_at_s"  # a place in time, no duration
_HIGHER = ("_per_s", "goodput_share")
_LOWER = ("_s", "_ms", "_us", "_ms_per_token", "_s_per_token")


def metrics_of(measured: Measured) -> dict[str, float]:
    """Give the median of the raw values of each metric: ``NAME`` of the suite itself, ``CELL/NAME`` of a valid cell.

    A boot has one value, however many requests it answered: these share the boot, its cache and its card. What has a
    value that is not above 0, or not finite, is left out, as no ratio can be made of it.
    """
    return {
        name: median(values)
        for name, values in _samples(measured)
        if not name.endswith(_MOMENT) and values and all(0 < value < math.inf for value in values)
    }


def _samples(measured: Measured) -> Iterator[tuple[str, tuple[float, ...]]]:
    yield from measured.values.items()
    for cell in measured.cells:
        if cell.valid:
            yield from ((f"{cell.name}/{name}", values) for name, values in cell.values.items())


def better(metric: str) -> Better | None:
    """Say by a metric's unit which way is better; None when its name does not tell."""
    if metric.endswith(_HIGHER):
        return "higher"
    return "lower" if metric.endswith(_LOWER) and not metric.endswith(_MOMENT) else None


def primary(suite: str, asked: str | None) -> str:
    """Say which metric has the verdict. Raises UsageError when none is named and the suite has none of its own."""
    name = asked or PRIMARY.get(suite)
    if name is None:
        hint = "name one: --metric NAME, or --metric CELL/NAME; `ttx records show` of a run of the suite lists them"
        raise UsageError(f"suite {suite} has no metric of its own for a verdict", hint=hint, reason="no_metric")
    if better(name) is None:
        hint = (
            f"known are names in {', '.join(_HIGHER)} (higher is better) and in {', '.join(_LOWER)} (lower is better)"
        )
        raise UsageError(f"whether more or less of {name!r} is better is not known", hint=hint, reason="no_direction")
    return name
