"""Asks the server of one run for its metrics."""

from __future__ import annotations

import http
import time
from typing import TYPE_CHECKING

from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client
from ttstack.bench.traffic import LARGEST, History
from ttstack.run.top.types import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 5.0  # the screen does not wait for it
QUIET_S = 30.0  # a server that has no metrics is not asked each second


class Asker:
    """One server. ``serves`` is asked before each request whether what listens there is ours."""

    def __init__(self, url: str, serves: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = Client.of(url, TIMEOUT_S)
        self._serves = serves
        self._clock = clock
        self._history = History()
        self._quiet: tuple[float, Metrics] | None = None

    def look(self) -> Metrics:
        """Ask once. Raises nothing that a server can be the cause of."""
        if not self._serves():
            return Metrics("not_asked")
        if self._quiet is not None and self._clock() < self._quiet[0]:
            return self._quiet[1]
        try:
            status, data = self._client.raw("/metrics")
        except BenchError as error:
            return Metrics("no_answer", detail=error.message)
        now = self._clock()
        if status != http.HTTPStatus.OK or len(data) > LARGEST:
            what = f"/metrics answers {status}" if status != http.HTTPStatus.OK else "/metrics is too long"
            return self._be_quiet(now, what)
        traffic = self._history.note(now, data.decode("utf-8", "replace"))
        if traffic.generation_tokens is None and traffic.running is None:
            return self._be_quiet(now, "/metrics has none of vLLM's")
        return Metrics("answered", traffic)

    def _be_quiet(self, now: float, detail: str) -> Metrics:
        said = Metrics("no_metrics", detail=detail)
        self._quiet = (now + QUIET_S, said)
        return said
