"""The host room's errors."""

from __future__ import annotations

from ttstack.errors import TtxError


class HostError(TtxError):
    """Something of this host could not be read or written, so that nothing is known about it."""

    reason = "host"
