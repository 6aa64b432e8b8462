"""The slots room's errors."""

from __future__ import annotations

from ttstack.errors import RefusedError, TtxError, UsageError


class SlotsError(TtxError):
    """A lock file could not be made, opened or locked."""

    reason = "slots"


class NoSuchCardError(UsageError):
    """A card was asked for that this host does not have, or more cards than there are."""

    reason = "no_such_card"


class BusyError(RefusedError):
    """The cards are not free, and the wait for them is over."""

    reason = "busy"


class HeldError(RefusedError):
    """A slot cannot be asked back."""

    reason = "held"


class ProgramError(SlotsError):
    """The program that was to have the cards cannot be started. ``exit_status`` is what shells return for that."""

    reason = "program"

    def __init__(self, message: str, *, found: bool) -> None:
        super().__init__(message, hint="give the program and its arguments after --, as in: ttx slot run -- CMD")
        self.exit_status = 126 if found else 127
