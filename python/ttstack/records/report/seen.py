"""Runs as a report looks at them: parsed once, their texts safe to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.records.report.words import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.records.log import RunRecord
    from ttstack.records.types import Measured

_LINES_UP = ("_at_s", "_at_tokens", "_residual_s")
"""Ends of names whose samples are places along a line, one for each request, and have no middle that says anything."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One run. ``arm``: the arm's name, or the address of a server that was measured without one."""

    run: RunRecord
    arm: str
    simulated: bool
    against: tuple[str, ...]  # why its numbers may not be quoted
    measured: Measured | None  # None when there is not a single number

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.id

    @property
    def time(self) -> str:
        """When it was opened."""
        return self.run.time

    @property
    def host(self) -> str:
        """The machine's name."""
        return text(self.run.opened.host.hostname)


def look(run: RunRecord) -> Seen:
    """Look at a run. Raises RecordsError when a line of it turns out to be none; see ``RunRecord.fault``."""
    measured = run.closed.measured if run.closed else None
    return Seen(
        run=run,
        arm=text(run.arm or run.opened.asked.url or "(no arm)"),
        simulated=run.opened.simulated,
        against=tuple(map(text, run.not_quotable)),
        measured=measured if measured and (measured.values or measured.cells) else None,
    )


def values_of(table: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    """Give those samples that have a middle, by the names that are shown."""
    return {text(name): samples for name, samples in table.items() if samples and not name.endswith(_LINES_UP)}
