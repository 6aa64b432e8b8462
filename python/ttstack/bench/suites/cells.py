"""From the requests of a load to a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ttstack.bench.suites.server_times import server_values
from ttstack.records.statistics import summarise
from ttstack.records.types import Cell, ClientSeen

if TYPE_CHECKING:
    from ttstack.bench.client.types import LoadResult, Result
    from ttstack.records.types import Json

Values = Mapping[str, tuple[float, ...]]
DIGITS = 7  # of a second: finer than any clock here
BUNDLED = "the server does not say how many tokens an event brings: TG takes each event of the first read for one token"


def at_once(measured: Sequence[Result]) -> tuple[str, ...]:
    """Say that answers of several tokens came in one read: something holds them back, and TG cannot be told."""
    count = sum(1 for result in measured if result.tpot_s is None and result.ask.max_tokens > 1)
    return (f"{count} of {len(measured)} answers came all at once: no time per token can be told",) if count else ()


def request_values(results: Sequence[Result]) -> dict[str, tuple[float, ...]]:
    """Give the samples of valid requests, in their order; a sample that one of them lacks is left out for all.

    ``ttft_s``, ``e2e_s``, ``pp_tokens_per_s`` (prompt tokens over TTFT), ``tg_ms_per_token`` (TPOT), ``largest_gap_s``
    (between two events).
    """
    columns: dict[str, list[float | None]] = {
        "ttft_s": [result.ttft_s for result in results],
        "e2e_s": [result.e2e_s for result in results],
        "pp_tokens_per_s": [result.prefill_tokens_per_s for result in results],
        "tg_ms_per_token": [None if result.tpot_s is None else result.tpot_s * 1000 for result in results],
        "largest_gap_s": [max(result.gaps_s, default=None) for result in results],
    }
    whole = {name: [value for value in column if value is not None] for name, column in columns.items()}
    return {
        name: tuple(round(value, DIGITS) for value in column)
        for name, column in whole.items()
        if column and len(column) == len(results)
    }


def cell_of(  # noqa: PLR0913 - a cell's parts, by name
    name: str,
    shape: Mapping[str, Json],
    load: LoadResult,
    measured: Sequence[Result],
    *,
    values: Values | None = None,
    server: Values | None = None,
    reasons: Sequence[str] = (),
) -> Cell:
    """Make a cell of the requests that are ``measured``; all requests of the load count for whether it is void."""
    found = {**request_values(measured), **(values or {})}
    against = [*reasons, *load.against, *at_once(measured)]
    if not measured and not against:
        against.append("no request was measured")
    return Cell(
        name=name,
        shape=shape,
        reasons=tuple(against),
        values=found,
        stats={what: summarise(samples) for what, samples in found.items()},
        server={**server_values(measured), **(server or {})},
        requests=load.requests,
        voids={reason.value: count for reason, count in load.voids.items()},
        client=client_of(load),
        notes=() if all(result.tpot_exact for result in measured) else (BUNDLED,),
    )


def client_of(load: LoadResult) -> ClientSeen:
    """Say what the client did meanwhile."""
    return ClientSeen(round(load.seconds, DIGITS), round(load.cpu_share, 4), round(load.lag.p99, DIGITS))


def void_cell(name: str, shape: Mapping[str, Json], reason: str, requests: int = 0, code: str = "") -> Cell:
    """Make a cell of which nothing can be used: ``requests`` were tried in vain."""
    return Cell(name, shape, (reason,), requests=requests, voids={code: requests} if requests and code else {})


def unmeasured_cell(name: str, shape: Mapping[str, Json], why: str) -> Cell:
    """Make a cell that was not measured, which is nothing against the others."""
    return Cell(name, shape, notes=(f"not measured: {why}",))
