"""One look at the host, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ttstack.bench.traffic import Traffic
    from ttstack.host.telemetry import Telemetry
    from ttstack.host.types import Card
    from ttstack.run.control import LiveRun
    from ttstack.slots.view import SlotView

Asking = Literal["not_asked", "first", "answered", "no_answer", "no_metrics", "foreign"]
"""not_asked: it does not serve (yet); first: no answer is there yet, and none is late; no_answer: it is late, or there
was none; no_metrics: it answers, but not with vLLM's metrics; foreign: another program has the run's port."""


@dataclass(frozen=True, slots=True)
class CardNow:
    """One card. ``beats``: whether its firmware's counter moves; None: not known yet, or the driver does not tell."""

    card: Card
    simulated: bool
    telemetry: Telemetry
    beats: bool | None
    slot: SlotView | None  # None: nobody has looked yet, or it could not be told


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a run's server tells. ``traffic`` is its last answer, if that is not too old; ``detail`` is for people."""

    asking: Asking
    traffic: Traffic | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RunNow:
    """One run. Memory in bytes, resident, of all processes of its engine; age in seconds. None: not known."""

    live: LiveRun
    age_s: float | None
    memory_bytes: int | None
    last_line: str
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Overview:
    """The host now. ``troubles``: what could not be looked at, a sentence each."""

    at: float  # seconds since the epoch
    cards: tuple[CardNow, ...]
    runs: tuple[RunNow, ...]
    memory_available_bytes: int | None
    memory_bytes: int | None
    troubles: tuple[str, ...] = ()
