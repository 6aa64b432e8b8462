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
