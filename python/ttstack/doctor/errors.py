"""The doctor room's errors."""

from __future__ import annotations

from ttstack.errors import UsageError


class DoctorError(UsageError):
    """The doctor was told something that it cannot work with."""

    reason = "doctor"
