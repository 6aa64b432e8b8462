"""Make the two lines of a run. Whoever runs something calls ``opening`` before it touches anything, and ``closing``."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from ttstack.records.code import this_tool
from ttstack.records.errors import RecordsError
from ttstack.records.quotable import reasons_against
from ttstack.records.types import SCHEMA, Closed, Opened

if TYPE_CHECKING:
    from ttstack.records.context import AbPlace, HostFacts, Tool
    from ttstack.records.types import (
        AskedRecord,
        Identity,
        Json,
        Measured,
        Observed,
        Outcome,
        Owner,
        Phase,
    )


def new_run_id(now: datetime | None = None) -> str:
    """Name a run so that names sort by time: ``20260131T235959-4f2a9c`` (UTC)."""
    moment = now or datetime.now(UTC)
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def timestamp(now: datetime | None = None) -> str:
    """UTC in ISO 8601 with milliseconds: ``2026-01-31T23:59:59.123Z``."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def opening(  # noqa: PLR0913 - a record's fields, all by name
    *,
    run: str,
    verb: str,
    arm: str,
    asked: AskedRecord,
    owner: Owner,
    host: HostFacts,
    simulated: bool,
    tool: Tool | None = None,
    ab: AbPlace | None = None,
    now: datetime | None = None,
) -> dict[str, Json]:
    """Build the line that opens a run. ``owner`` is the process that will close it; ``tool``: this code, else."""
    line = Opened(
        id=uuid.uuid4().hex,
        run=run,
        time=timestamp(now),
        verb=verb,
        arm=arm,
        simulated=simulated,
        owner=owner,
        asked=asked,
        host=host,
        tool=tool or this_tool(),
        ab=ab,
    )
    return {"schema": SCHEMA, "kind": "open", **_table(line)}


def closing(  # noqa: PLR0913 - a record's fields, all by name
    *,
    run: str,
    outcome: Outcome,
    exit_code: int,
    reason: str = "",
    text: str = "",
    phases: Sequence[Phase] = (),
    observed: Observed | None = None,
    identity: Identity | None = None,
    measured: Measured | None = None,
    now: datetime | None = None,
) -> dict[str, Json]:
    """Build the line that closes a run; ``quotable`` and its reasons are computed here.

    ``reason`` is the stable code of what went wrong (``TtxError.reason``), ``text`` its sentence; both stay empty
    when all went well.
    """
    against = reasons_against(outcome, identity, measured)
    line = Closed(
        id=uuid.uuid4().hex,
        run=run,
        time=timestamp(now),
        outcome=outcome,
        reason=reason,
        text=text,
        exit_code=int(exit_code),
        phases=tuple(phases),
        observed=observed,
        identity=identity,
        measured=measured,
        quotable=not against,
        quotable_reasons=against,
    )
    table = _table(line)
    if identity is not None:
        table["identity"] = {"verdict": identity.verdict, **_table(identity)}
    if measured is not None:
        table["measured"] = {"ok": measured.ok, **_table(measured)}
    return {"schema": SCHEMA, "kind": "close", **table}


def jsonable(value: object) -> Json:
    """Turn dataclasses, mappings, sequences, paths and enums into what JSON can hold.

    Raises RecordsError for anything else: a record must not hold a value's ``repr``.
    """
    if isinstance(value, Enum):
        return jsonable(value.value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _table(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        entries = sorted(value) if isinstance(value, set | frozenset) else value
        return [jsonable(entry) for entry in entries]
    raise RecordsError(f"a record cannot hold a {type(value).__name__}")


def _table(line: object) -> dict[str, Json]:
    names = [entry.name for entry in fields(cast("Opened", line))]
    return {name: jsonable(getattr(line, name)) for name in names}
