"""What a suite finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.records.types import Measured, MeasuredCheck

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.records.types import Json


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: what was expected and what was found, and in words what that means."""

    name: str
    ok: bool
    detail: str = ""
    expected: Json = None
    found: Json = None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """All checks and every raw sample of a suite. ``values`` never holds a sample of a void request."""

    suite: str
    checks: tuple[CheckResult, ...]
    values: Mapping[str, list[float]] = field(default_factory=dict)  # a name ends in its unit: ``ttft_s``
    requests: int = 0
    void: int = 0  # requests without a usable answer

    @property
    def ok(self) -> bool:
        """Whether there was something to check and all of it held."""
        return self.measured().ok

    def measured(self) -> Measured:
        """Turn into what a record holds."""
        checks = tuple(MeasuredCheck(c.name, c.ok, c.detail, c.expected, c.found) for c in self.checks)
        values = {name: tuple(samples) for name, samples in self.values.items()}
        return Measured(self.suite, checks, values, self.requests, self.void)
