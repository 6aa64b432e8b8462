"""The records room's errors."""

from __future__ import annotations

from ttstack.errors import TtxError


class RecordsError(TtxError):
    """A record could not be written or read, or a line that a caller built is not of the schema."""

    reason = "records"
