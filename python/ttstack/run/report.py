"""What a run tells while it goes on. The run room prints nothing: whoever calls it gives a reporter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Reporter(Protocol):
    """Told of everything, in order."""

    def begin(self, phase: str) -> None:
        """Hear that a phase has begun."""

    def detail(self, text: str) -> None:
        """Hear what goes on inside the phase: a step of the boot, who has the card."""

    def check(self, name: str, *, ok: bool | None, detail: str = "") -> None:
        """Hear of one check; None: it could not be told."""

    def end(self, phase: str, *, ok: bool, seconds: float) -> None:
        """Hear that the phase is over."""

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """Hear the last lines of a log, when something went wrong."""
