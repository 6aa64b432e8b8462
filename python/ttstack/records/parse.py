"""From a line that the schema accepted to data. Unknown fields are left out; see ``schema.violation``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from ttstack.records.context import AbPlace, HostFacts, HostState, Tool
from ttstack.records.types import (
    AskedRecord,
    CacheAsked,
    CacheWork,
    CardSeen,
    Cell,
    ClientSeen,
    Closed,
    Identity,
    IdentityCheck,
    Measured,
    MeasuredCheck,
    Observed,
    Opened,
    Owner,
    Phase,
    Stat,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Data = TypeVar("Data")


def opened(line: Mapping[str, Any]) -> Opened:
    """Read an opening line."""
    asked = line["asked"]
    return _plain(
        Opened,
        line,
        owner=_plain(Owner, line["owner"]),
        asked=_plain(
            AskedRecord,
            asked,
            cards=tuple(asked["cards"]),
            cache=None if asked["cache"] is None else _plain(CacheAsked, asked["cache"]),
            argv=tuple(asked["argv"]),
            secrets=tuple(asked["secrets"]),
        ),
        host=_host(line["host"]),
        tool=_plain(Tool, line["tool"]),
        ab=None if line.get("ab") is None else _plain(AbPlace, line["ab"]),
    )


def closed(line: Mapping[str, Any]) -> Closed:
    """Read a closing line, as it was written: whether it may be quoted today is for the reader to compute again."""
    observed, identity, measured = line["observed"], line["identity"], line["measured"]
    return _plain(
        Closed,
        line,
        phases=tuple(_plain(Phase, phase) for phase in line["phases"]),
        observed=None if observed is None else _observed(observed),
        identity=None if identity is None else _identity(identity),
        measured=None if measured is None else _measured(measured),
        quotable_reasons=tuple(line["quotable_reasons"]),
    )


def _host(table: Mapping[str, Any]) -> HostFacts:
    state = table.get("state")
    if state is None:
        return _plain(HostFacts, table)
    return _plain(HostFacts, table, state=_plain(HostState, state, load=tuple(map(float, state["load"]))))


def _observed(table: Mapping[str, Any]) -> Observed:
    cards = tuple(_plain(CardSeen, card) for card in table["cards"])
    work = table.get("cache_work")
    cache_work = None if work is None else _plain(CacheWork, work)
    return _plain(Observed, table, cards=cards, banners=tuple(table["banners"]), cache_work=cache_work)


def _identity(table: Mapping[str, Any]) -> Identity:
    return Identity(tuple(_plain(IdentityCheck, check) for check in table["checks"]))


def _measured(table: Mapping[str, Any]) -> Measured:
    checks = tuple(_plain(MeasuredCheck, check) for check in table["checks"])
    cells = tuple(_cell(cell) for cell in table.get("cells", ()))
    return _plain(Measured, table, checks=checks, values=_samples(table["values"]), cells=cells)


def _cell(table: Mapping[str, Any]) -> Cell:
    client = table.get("client")
    return _plain(
        Cell,
        table,
        reasons=tuple(table["reasons"]),
        values=_samples(table["values"]),
        stats={name: _plain(Stat, stat) for name, stat in table["stats"].items()},
        server=_samples(table["server"]),
        client=None if client is None else _plain(ClientSeen, client),
        notes=tuple(table.get("notes", ())),
    )


def _samples(table: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(map(float, samples)) for name, samples in table.items()}


def _plain(kind: type[Data], table: Mapping[str, Any], **parts: Any) -> Data:  # noqa: ANN401 - fields of ``kind``
    """Fill a dataclass: ``parts`` where they are given, else the table's own values, else the defaults."""
    names = cast("Any", kind).__match_args__  # a dataclass's fields
    return kind(**{name: table[name] for name in names if name in table} | parts)
