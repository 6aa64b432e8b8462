"""Whether docker and podman tell what they run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.doctor.codes import finding
from ttstack.host.containers import describe, run_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.doctor.types import Finding
    from ttstack.host.containers import Answer, Runner

# With a card, or about to get it back; see host.containers.
_STATES = {
    "docker": ("running", "paused", "restarting", "removing"),
    "podman": ("running", "paused", "stopping", "removing"),
}
_OURS = "ttstack.run"
_NAMES = ("docker", "podman")


@dataclass(frozen=True, slots=True)
class EnginesSeen:
    """What the engines told."""

    running: dict[str, int]  # containers, by engine that answered
    ours: tuple[str, ...]  # runs that have a container, sorted
    absent: tuple[str, ...]  # one sentence for each engine that is not here
    troubles: tuple[str, ...]  # one sentence for each that did not tell
    late: tuple[str, ...]  # engines that did not answer in time


def look(run: Runner = run_command) -> EnginesSeen:
    """Ask every engine of this host. Raises nothing."""
    late: list[str] = []
    asked: list[str] = []

    def watched(argv: Sequence[str], seconds: float) -> Answer:
        asked.append(argv[0])
        try:
            return run(argv, seconds)
        except TimeoutError:
            late.append(argv[0])
            raise

    told = describe(_STATES, run=watched)
    silent = {name for name in _NAMES if any(name in text for text in (*told.absent, *told.troubles))}
    running = Counter(command[0] for command, _ in told.entries)
    labels = [(entry.get("Config") or {}).get("Labels") or {} for _, entry in told.entries]
    return EnginesSeen(
        running={name: running[name] for name in dict.fromkeys(asked) if name not in silent},
        ours=tuple(sorted({str(label[_OURS]) for label in labels if label.get(_OURS)})),
        absent=told.absent,
        troubles=told.troubles,
        late=tuple(dict.fromkeys(late)),
    )


def judge(seen: EnginesSeen) -> Iterator[Finding]:
    """Say what to make of it."""
    for name, count in seen.running.items():
        yield finding("containers.answers", f"{name} answers and runs {count} container(s)", subject=name)
    for text in seen.absent:
        yield finding("containers.absent", text)
    for text in seen.troubles:
        hangs = any(name in text for name in seen.late)
        yield finding("containers.hangs" if hangs else "containers.unasked", text)
