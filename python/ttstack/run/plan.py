"""What a supervisor is told to start, as a file beside its log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.host.files import read_json, write_json
from ttstack.host.types import Card
from ttstack.records.build import jsonable
from ttstack.render.launch import Device, Launch, Mount, Port
from ttstack.run.watch import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.run.state import RunFolder


@dataclass(frozen=True, slots=True)
class Plan:
    """One start. Secrets are not in it: the supervisor has them in its environment."""

    run: str
    arm: str
    launch: Launch
    extra_env: Mapping[str, str]  # what the runtime adds, beside the launch's own
    boot_timeout_s: int
    cards: tuple[Card, ...]  # in the order of the slot's descriptors
    locks: Path
    legacy: Path | None
    simulated: bool
    limits: Limits = DEFAULT_LIMITS
    building: bool = False  # the tensor cache is not complete: this boot builds it
    expected: int = 0  # bytes of the whole tensor cache; 0: nobody knows

    @property
    def cache_root(self) -> Path:
        """Where the tensor caches lie."""
        return Path(self.launch.cache_dir).parent

    @property
    def port(self) -> Port:
        """Where the engine answers."""
        return self.launch.ports[0]


def write_plan(folder: RunFolder, plan: Plan) -> None:
    """Put a plan beside the run's log. Raises HostError."""
    write_json(folder.plan, jsonable(plan))


def read_plan(folder: RunFolder) -> Plan:
    """Read it back. Raises HostError."""
    table: dict[str, Any] = dict(read_json(folder.plan))
    launch = table["launch"]
    lists = {"devices": Device, "mounts": Mount, "ports": Port}
    made = {name: tuple(kind(**entry) for entry in launch[name]) for name, kind in lists.items()}
    words = {name: tuple(launch[name]) for name in ("argv", "secrets")}
    return Plan(
        run=table["run"],
        arm=table["arm"],
        launch=Launch(**{**launch, **words, **made}),
        extra_env=table["extra_env"],
        boot_timeout_s=table["boot_timeout_s"],
        cards=tuple(Card(**card) for card in table["cards"]),
        locks=Path(table["locks"]),
        legacy=None if table["legacy"] is None else Path(table["legacy"]),
        simulated=table["simulated"],
        limits=Limits(**table.get("limits", {})),
        building=table.get("building", False),
        expected=table.get("expected", 0),
    )
