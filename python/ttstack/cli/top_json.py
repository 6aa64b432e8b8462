"""One look of ``ttx top`` for programs. Its keys are described in docs/reference/top.md."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ttstack.bench.traffic import Traffic
from ttstack.cli.live import note_of
from ttstack.records.build import jsonable

if TYPE_CHECKING:
    from ttstack.run.top.types import CardNow, Overview, RunNow


def snapshot(seen: Overview) -> dict[str, Any]:
    """Describe the host; null is what is not known."""
    return {
        "at": datetime.fromtimestamp(seen.at, UTC).isoformat(timespec="milliseconds"),
        "memory_available_bytes": seen.memory_available_bytes,
        "memory_bytes": seen.memory_bytes,
        "cards": [_card(card) for card in seen.cards],
        "runs": [_run(run) for run in seen.runs],
        "troubles": list(seen.troubles),
    }


def _card(now: CardNow) -> dict[str, Any]:
    view = now.slot
    return {
        "id": now.card.id,
        "card": jsonable(now.card),
        "simulated": now.simulated,
        "temperature_c": now.telemetry.temperature_c,
        "clock_mhz": now.telemetry.clock_mhz,
        "power_w": now.telemetry.power_w,
        "heartbeat_moves": now.beats,
        "slot": None
        if view is None
        else {
            "state": view.state,
            "who": view.text,
            "claim": None if view.claim is None else view.claim.to_note(),
            "owner_lives": view.owner_lives,
        },
    }


def _run(now: RunNow) -> dict[str, Any]:
    state = now.live.state
    return {
        "run": state.run,
        "arm": state.arm,
        "status": now.live.status,
        "step": state.step,
        "note": note_of(now.live),
        "age_s": now.age_s,
        "memory_bytes": now.memory_bytes,
        "url": state.url,
        "port": state.port,
        "cards": [card.id for card in state.cards],
        "server": now.metrics.asking,
        "server_detail": now.metrics.detail,
        **asdict(now.metrics.traffic or Traffic()),
        "last_line": now.last_line,
    }
