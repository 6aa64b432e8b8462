"""Why and how a run ended, and its record's close by the supervisor when nobody else is left to write it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.errors import Exit

if TYPE_CHECKING:
    from ttstack.records.types import Outcome
    from ttstack.run.link import Orders
    from ttstack.run.state import RunFolder, State

_POLL_S = 0.03


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is over."""

    reason: str
    text: str


def how_it_ended(code: int) -> str:
    """Say what an exit code means; negative ones are signals, as in ``subprocess``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def settle(folder: RunFolder, orders: Orders, state: State | None) -> None:
    """Close the record when nobody else will: the owner left, or died."""
    while not (orders.done or orders.gone or orders.left):
        orders.poll(_POLL_S)
    if orders.done:
        return
    from ttstack.run.journal import close_left, store_of  # noqa: PLC0415 - a boot does not wait for what it may not need

    outcome: Outcome = "aborted"
    reason, text = "owner_died", "the ttx that ran this ended without stopping it"
    if orders.left and state is not None:
        reason, text = state.reason, state.text
        outcome = "ok" if reason == "stopped" else "failed"
    elif state is not None and state.phase == "dirty":
        reason, text = state.reason, state.text
    exit_code = Exit.DONE if outcome == "ok" else Exit.FAILED
    if outcome == "ok":
        reason, text = "", ""
    close_left(store_of(folder.state), folder, outcome, exit_code, reason, text)
