"""The bench room's errors."""

from __future__ import annotations

from ttstack.errors import TtxError


class BenchError(TtxError):
    """A request that has no usable answer.

    ``reason`` is one of ``connect``, ``timeout``, ``redirect``, ``protocol`` (not HTTP, cut short, too large),
    ``not_json``, ``answer`` (JSON, but not what the API promises), ``status`` (another status than asked for),
    ``stream`` (one that is void) and ``request`` (one that cannot be made). A load without any connection has the code
    of a VoidReason.
    """

    reason = "bench"
