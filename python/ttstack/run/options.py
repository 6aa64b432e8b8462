"""How to run what was asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ttstack.run.watch import DEFAULT_LIMITS, SIMULATED_LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ttstack.host.types import Places
    from ttstack.records.context import AbPlace
    from ttstack.records.types import Json
    from ttstack.run.watch import Limits


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. ``wait_s`` 0: refuse at once when the cards are busy; None: wait for ever."""

    verb: Literal["run", "up"]
    suite: str = "smoke"  # what ``run`` measures
    settings: Mapping[str, Json] = field(default_factory=dict)  # of the suite, where they are not its defaults
    wait_s: float | None = 0
    engine_command: tuple[str, ...] | None = None  # in place of the engine's own program
    extra_env: Mapping[str, str] = field(default_factory=dict)
    legacy: Path | None = None  # where older drivers' lock directory is
    listen_wait_s: float = 10.0
    cards: tuple[str, ...] = ()  # ids in place of those of the arm, whose digest stays as it is
    ab: AbPlace | None = None  # which place it has in an A/B
    limits: Limits | None = None  # when it is stopped; None: those of its kind of host

    def limits_on(self, places: Places) -> Limits:
        """Say when an engine is stopped on this host."""
        return self.limits or (SIMULATED_LIMITS if places.simulated else DEFAULT_LIMITS)
