"""The host room's errors."""

from __future__ import annotations

from ttstack.errors import RefusedError, TtxError


class HostError(TtxError):
    """Something of this host could not be read or written, so that nothing is known about it."""

    reason = "host"


class HostRefusedError(RefusedError):
    """The host is not in a state in which the work may start."""

    reason = "host"
