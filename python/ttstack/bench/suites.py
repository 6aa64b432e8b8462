"""The suites by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ttstack.bench.smoke import run_smoke
from ttstack.errors import UsageError
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.records.types import Measured, MeasuredCheck


class Suite(Protocol):
    """A fixed set of measurements of one server."""

    def __call__(
        self,
        base_url: str,
        model: str,
        max_model_len: int,
        on_check: Callable[[MeasuredCheck], None] | None = None,
    ) -> Measured:
        """Measure; ``on_check`` hears of each check as it is done. A server that fails is a result, not an error."""


SUITES: dict[str, Suite] = {"smoke": run_smoke}


def find_suite(name: str) -> Suite:
    """Return a suite. Raises UsageError that names the nearest one."""
    try:
        return SUITES[name]
    except KeyError:
        hint = did_you_mean(name, SUITES) or f"there are: {', '.join(SUITES)}"
        raise UsageError(f"unknown suite {name!r}", hint=hint, reason="unknown_suite") from None
