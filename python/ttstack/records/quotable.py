"""Whether a run's numbers may be quoted. The answer follows from the record and is never set by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.records.types import Identity, IdentityCheck

if TYPE_CHECKING:
    from ttstack.records.types import Measured, Outcome

NO_ARM = Identity((IdentityCheck("arm", ok=None),))
"""The identity of a server that was measured as it was found: there is no arm that it could be held against."""


def reasons_against(outcome: Outcome, identity: Identity | None, measured: Measured | None) -> tuple[str, ...]:
    """Say everything that forbids quoting; an empty answer means quotable.

    A simulated run may be quotable: the record says ``simulated`` itself, and whoever quotes it says so too.
    """
    found: list[str] = []
    if outcome != "ok":
        found.append(f"the outcome is {outcome}")
    found.extend(_of_identity(identity))
    found.extend(_of_measured(measured))
    return tuple(found)


def _of_identity(identity: Identity | None) -> list[str]:
    if identity is None or not identity.checks:
        return ["identity was not checked"]
    if identity == NO_ARM:
        return ["no arm: what was measured is not held against one"]
    refused = [f"identity: {check.name} is not as asked" for check in identity.checks if check.ok is False]
    unknown = [f"identity: {check.name} could not be told" for check in identity.checks if check.ok is None]
    return refused + unknown


def _of_measured(measured: Measured | None) -> list[str]:
    if measured is None or not measured.checks:
        return ["nothing was measured"]
    found = [f"suite {measured.suite}: {check.name} failed" for check in measured.checks if not check.ok]
    found += [
        f"suite {measured.suite}: cell {cell.name}: {reason}" for cell in measured.cells for reason in cell.reasons
    ]
    if measured.void:
        found.append(f"suite {measured.suite}: {measured.void} of {measured.requests} requests are void")
    return found
