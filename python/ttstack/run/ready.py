"""Whether an engine answers: for engines whose log does not say that they are ready."""

from __future__ import annotations

import time
from http import HTTPStatus

_EVERY_S = 0.5


def healthy(url: str, timeout_s: float) -> bool:
    """Ask /health once; vLLM answers 200 with an empty body while it serves."""
    from ttstack.bench.errors import BenchError  # noqa: PLC0415 - most boots are shorter than the first question
    from ttstack.bench.http import Client  # noqa: PLC0415

    try:
        return Client.of(url, timeout_s).get("/health").status == HTTPStatus.OK
    except BenchError:
        return False  # nobody answers


class Health:
    """Asks whether an engine is healthy, now and then."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._next = time.monotonic() + _EVERY_S

    def is_up(self) -> bool:
        """Whether it answered 200 just now; False as well when it is not yet time to ask again."""
        if time.monotonic() < self._next:
            return False
        up = healthy(self._url, timeout_s=1.0)
        self._next = time.monotonic() + _EVERY_S
        return up
