"""The folder of one run, and its state, which only the run's supervisor writes while it lives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from ttstack.host.errors import HostError
from ttstack.host.files import read_json, write_json
from ttstack.host.types import Card, ProcessId
from ttstack.records.build import jsonable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RunPhase = Literal["booting", "ready", "stopping", "stopped", "dirty"]
"""stopped: no engine any more; dirty: the engine was told to stop and did not."""

Data = TypeVar("Data")
_PLAIN: dict[str, type] = {"str": str, "int": int, "bool": bool, "RunPhase": str}  # types as they are written below

OVER: frozenset[RunPhase] = frozenset({"stopped", "dirty"})
TAIL_LINES = 20
_TAIL_BYTES = 65536


@dataclass(frozen=True, slots=True)
class State:
    """What a run is now. ``reason`` and ``text`` say why it is over, or why it is being stopped."""

    run: str
    arm: str
    since: str  # UTC, ISO 8601
    boot_id: str
    simulated: bool
    phase: RunPhase
    step: str  # of the boot, see ttstack.run.texts
    supervisor: ProcessId
    engine: ProcessId | None
    cards: tuple[Card, ...]
    host: str
    port: int
    reason: str = ""
    text: str = ""
    exit_code: int | None = None  # of the engine; negative: the signal that ended it
    attended: bool = True  # a ttx waits for it and will stop it; False after ``ttx up`` has left
    stop_grace_s: int = 60
    runtime: str = "process"
    container: str = ""  # id of the engine's container

    @property
    def url(self) -> str:
        """Where the engine answers. An engine that listens everywhere is asked on this host's loopback."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - not bound, asked
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """``runs/RUN`` under the state folder."""

    path: Path

    @property
    def run(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def state(self) -> Path:
        """The state folder that it lies in."""
        return self.path.parents[1]

    @property
    def log(self) -> Path:
        """All that the engine printed, from its first byte."""
        return self.path / "engine.log"

    @property
    def plan(self) -> Path:
        """What the supervisor is to start."""
        return self.path / "launch.json"

    @property
    def draft(self) -> Path:
        """The closing line as far as it is known; whoever closes the run starts from it."""
        return self.path / "draft.json"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor has to say for itself; normally nothing."""
        return self.path / "supervisor.log"

    def read(self) -> State | None:
        """Read the state; None before there is one. Raises HostError when it is there and is not a state."""
        path = self.path / "state.json"
        try:
            if not path.exists():
                return None
            return _state(read_json(path))
        except OSError as error:
            raise HostError(f"cannot look at {path}: {error.strerror}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise HostError(f"{path} is not the state of a run: {error!r}") from error

    def over(self) -> bool:
        """Whether the run has come to its end. Raises HostError as ``read`` does."""
        state = self.read()
        return state is not None and state.phase in OVER

    def write(self, state: State) -> None:
        """Replace the state. Raises HostError."""
        write_json(self.path / "state.json", jsonable(state))

    def tail(self, lines: int = TAIL_LINES) -> list[str]:
        """Read the last lines of the engine's log; none when there is no log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return []
        return text.split("\n")[: -1 if text.endswith("\n") else None][-lines:]


def run_folder(state: Path, run: str) -> RunFolder:
    """Name a run's folder."""
    return RunFolder(state / "runs" / run)


def run_folders(state: Path) -> Iterator[RunFolder]:
    """List all runs' folders, oldest first (their names sort by time)."""
    top = state / "runs"
    if top.is_dir():
        yield from (RunFolder(path) for path in sorted(top.iterdir()) if path.is_dir())


def _state(table: dict[str, Any]) -> State:
    engine = table["engine"]
    nested = {
        "supervisor": _known(ProcessId, table["supervisor"]),
        "engine": None if engine is None else _known(ProcessId, engine),
        "cards": tuple(_known(Card, card) for card in table["cards"]),
    }
    return _known(State, {**table, **nested})


def _known(kind: type[Data], table: dict[str, Any]) -> Data:
    """Fill a dataclass with what it knows.

    A run may outlive the ttx that started it: fields of a newer one are left out, and a field that is added to these
    classes needs a default, so that the state of an older one can be read. Raises TypeError for a text or a number
    that is none, and for a class's missing fields.
    """
    known = {entry.name: entry.type for entry in fields(cast("Any", kind))}
    for name, value in dict(table).items():
        plain = _PLAIN.get(str(known.get(name)))
        if plain is not None and type(value) is not plain:
            raise TypeError(f"{name} is {value!r}, no {plain.__name__}")
    return kind(**{name: value for name, value in table.items() if name in known})
