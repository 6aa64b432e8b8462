"""Load on a server: closed or open loop, every request with its times."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, NamedTuple

from ttstack.bench.client.cache_hits import prefix_hits
from ttstack.bench.client.connection import ConnectError, Connection, Turns, connect
from ttstack.bench.client.intake import Intake
from ttstack.bench.client.request import ask_bytes
from ttstack.bench.client.result import Taken
from ttstack.bench.client.stats import Watch, no_collection
from ttstack.bench.client.types import Ask, Closed, Limits, LoadResult, Open, Result, Void, VoidReason
from ttstack.bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator

    from ttstack.bench.client.endpoint import Endpoint

    Heard = Callable[[Result], None] | None

_MOST_OPENED = 256  # connections before the first request of an open loop


def run_load(
    endpoint: Endpoint,
    asks: Iterable[Ask],
    pattern: Closed | Open,
    limits: Limits | None = None,
    on_result: Heard = None,
) -> LoadResult:
    """Send all asks and wait for all answers.

    A sequence of asks is encoded before the first is sent; any other iterable is encoded as it goes, which costs the
    others some precision. Answers are read when all are there; with ``on_result`` each is read in small steps soon
    after its end, handed over and not kept, as a long load needs it. Raises BenchError when no connection can be
    opened at all, or when an ask makes no request.
    """
    limits = limits or Limits()
    before = prefix_hits(endpoint) if limits.watch_cache else None
    with no_collection(), asyncio.Runner() as runner:
        result = runner.run(load(endpoint, asks, pattern, limits, on_result))
    after = prefix_hits(endpoint) if before is not None else None
    return result if before is None or after is None else with_cache_hits(result, after - before)


def with_cache_hits(load: LoadResult, hits: float) -> LoadResult:
    """Add the server's own count of cache hits; requests that it told nothing about by themselves are void then."""
    results = tuple(map(_void_by_hits, load.results)) if hits > 0 else load.results
    voids = _voids(results) if results else load.voids
    return replace(load, results=results, voids=voids, cache_hits=hits)


def _void_by_hits(result: Result) -> Result:
    told = result.usage is not None and result.usage.cached is not None
    if result.void is not None or result.ask.may_hit_cache or told:
        return result
    detail = "the server's /metrics counted prefix cache hits meanwhile"
    return replace(result, void=Void(VoidReason.CACHE_HIT, detail))


def _voids(results: Iterable[Result]) -> Counter[VoidReason]:
    return Counter(result.void.reason for result in results if result.void is not None)


def schedule(pattern: Open) -> Iterator[float]:
    """Give the times at which requests are due, s since the first: without end, and the same for the same seed."""
    if pattern.arrivals == "constant":
        return accumulate(repeat(1 / pattern.rate), initial=0.0)
    draw = random.Random(pattern.seed)  # noqa: S311 - no secret
    return accumulate(iter(lambda: draw.expovariate(pattern.rate), None), initial=0.0)


async def load(
    endpoint: Endpoint, asks: Iterable[Ask], pattern: Closed | Open, limits: Limits, on_result: Heard = None
) -> LoadResult:
    """Do the same on a loop that runs already, without a look at /metrics; all times are of that loop's clock."""
    if (pattern.concurrency if isinstance(pattern, Closed) else pattern.rate) <= 0:
        raise BenchError("a load needs at least one request at a time, or a rate above 0", reason="request")
    return await _Load(endpoint, asks, limits, on_result).run(pattern)


class _Prepared(NamedTuple):
    number: int
    ask: Ask
    data: bytes


class _Load:
    """One load while it goes on."""

    def __init__(self, endpoint: Endpoint, asks: Iterable[Ask], limits: Limits, on_result: Heard) -> None:
        self._endpoint, self._limits = endpoint, limits
        self._clock = asyncio.get_running_loop().time
        self._count = len(asks) if isinstance(asks, Sequence) else _MOST_OPENED
        prepared = (_Prepared(number, ask, ask_bytes(endpoint, ask)) for number, ask in enumerate(asks))
        self._asks = iter(list(prepared)) if isinstance(asks, Sequence) else prepared
        self._intake = Intake(endpoint.token, on_result)
        self._idle: list[Connection] = []
        self._opened: list[Connection] = []
        self._turns = Turns()

    async def run(self, pattern: Closed | Open) -> LoadResult:
        """Open connections, send everything, read everything."""
        wanted = pattern.concurrency if isinstance(pattern, Closed) else pattern.connections or _MOST_OPENED
        try:
            await self._open(min(wanted, self._count))
            watch = Watch(asyncio.get_running_loop())
            began, wall_began = self._clock(), time.time()
            self._intake.began = began
            await (self._closed(pattern, began) if isinstance(pattern, Closed) else self._open_loop(pattern, began))
            seconds = self._clock() - began
            lag, cpu_s = watch.stop()
        except BaseExceptionGroup as faults:  # of several at once; one says enough
            raise faults.exceptions[0] from None
        finally:
            for connection in self._opened:
                connection.close()
        results = await self._intake.finish()
        return LoadResult(
            results=results,
            pattern=pattern,
            began=began,
            wall_began=wall_began,
            seconds=seconds,
            lag=lag,
            cpu_s=cpu_s,
            requests=self._intake.count,
            voids=self._intake.voids,
            may_hit_cache=self._intake.may_hit_cache,
        )

    async def _open(self, count: int) -> None:
        """Open connections before anything is timed. Raises BenchError when there is none at all."""
        made = await asyncio.gather(*(self._connect() for _ in range(count)), return_exceptions=True)
        faults = [fault for fault in made if isinstance(fault, BaseException)]
        for fault in faults:
            if not isinstance(fault, ConnectError):
                raise fault
        self._idle = [connection for connection in made if isinstance(connection, Connection)]
        if faults and not self._idle:
            fault = faults[0]
            reason = fault.void.reason.value if isinstance(fault, ConnectError) else "connect"
            raise BenchError(str(fault), reason=reason)

    async def _connect(self) -> Connection:
        connection = await connect(self._endpoint, self._limits.connect_s, self._turns)
        self._opened.append(connection)
        return connection

    def _next(self, began: float) -> _Prepared | None:
        """Give the next request, unless it is too late for one."""
        if self._limits.duration_s is not None and self._clock() >= began + self._limits.duration_s:
            return None
        return next(self._asks, None)

    async def _closed(self, pattern: Closed, began: float) -> None:
        async def one_after_the_other() -> None:
            while (prepared := self._next(began)) is not None:
                await self._request(prepared, None)

        await _all(one_after_the_other() for _ in range(min(pattern.concurrency, self._count)))

    async def _open_loop(self, pattern: Open, began: float) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            for after in schedule(pattern):
                due = began + after
                if (wait := due - loop.time()) > 0:
                    await asyncio.sleep(wait)
                if (prepared := self._next(began)) is None:
                    return
                group.create_task(self._request(prepared, due))

    async def _request(self, prepared: _Prepared, due: float | None) -> None:
        """Send one request over a connection that is open, if there is one, and take its answer in."""
        number, ask, data = prepared
        resent = 0
        while True:
            connection = self._take_idle()
            if connection is None:
                try:
                    connection = await self._connect()
                except ConnectError as error:
                    self._intake.take(Taken(ask, number, None, void=error.void, scheduled=due, resent=resent))
                    return
            kept = connection.used
            sent, wire = await connection.ask(data, self._limits.timeout_s)
            if connection.ready:
                self._idle.append(connection)
            else:
                self._opened.remove(connection)
            # A server may close a kept connection at any moment; then it has not seen the request (RFC 9112, 9.3.1).
            if not (kept and wire.bytes_read == 0 and wire.fault and wire.fault.reason is VoidReason.DROPPED):
                self._intake.take(Taken(ask, number, sent, wire, scheduled=due, resent=resent))
                return
            resent += 1

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.ready:
                return connection
            self._opened.remove(connection)
        return None


async def _all(work: Iterable[Coroutine[None, None, None]]) -> None:
    """Do all at once; when one fails the others end, too."""
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)
