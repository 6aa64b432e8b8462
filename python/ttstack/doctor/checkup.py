"""The whole examination: every question at once, each in a process of its own with a deadline."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.doctor import baseline, cards, disks, engines, kernel, memory, slots
from ttstack.doctor.codes import finding
from ttstack.doctor.types import LEVELS
from ttstack.host.container_root import Settings, container_root
from ttstack.host.deadline import Outcome, Probe, gather
from ttstack.host.errors import HostError
from ttstack.host.kernel_log import read_kernel_log
from ttstack.host.memory import memory_limit, read_memory
from ttstack.host.process import boot_id
from ttstack.slots import view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ttstack.doctor.disks import DiskSeen
    from ttstack.doctor.memory import Verdict
    from ttstack.doctor.types import Baseline, Finding, Level, Scan
    from ttstack.host.memory import Limit, Memory
    from ttstack.host.types import Places, Roots

_SHORT_S = 10.0  # for files of the kernel and of disks: a busy host is no hung one
_LOG_S = 15.0
_ENGINES_S = 45.0  # host.containers gives each question to docker and podman 10 s of its own
_AGAIN_S = 0.4  # after which a large residual is measured again: it must not be a moment's


@dataclass(frozen=True, slots=True)
class MemorySeen:
    """What the memory's probe read."""

    memory: Memory
    limit: Limit | None
    boot: str
    release: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything."""

    findings: tuple[Finding, ...]
    outcomes: dict[str, Outcome]  # what was read, by probe
    verdict: Verdict | None  # None: the memory could not be read
    baseline: Baseline | None
    baseline_kept: str  # why a new baseline could not be written down; ""
    scan: Scan
    seconds: float

    @property
    def level(self) -> Level:
        """The worst of the findings."""
        return max((finding.level for finding in self.findings), key=LEVELS.index, default="ok")


def examine(
    places: Sequence[Places],
    environ: Mapping[str, str],
    *,
    waiting: Callable[[Sequence[str]], None] = lambda _: None,
) -> Report:
    """Examine this host: the real one first, then its simulated one. ``waiting`` is told what has not answered yet.

    Raises DoctorError for a limit that is no number, and nothing for what is wrong with the host.
    """
    limit = memory.reboot_limit(environ)
    begun = time.monotonic()
    real = places[0]
    outcomes = gather(probes(places, environ, limit), waiting=waiting)
    scan = slots.scan(outcomes["cards"], outcomes["slots"])
    found: list[Finding] = []
    for place in places:
        found += _cards_and_slots(place, outcomes, scan)
    found += _or_trouble(outcomes["runs"], slots.judge_runs)
    found += _or_trouble(outcomes["containers"], engines.judge)
    for name, outcome in outcomes.items():
        if name.startswith("disk "):
            found += _or_trouble(outcome, disks.judge)
    told: MemorySeen | None = outcomes["memory"].value
    found += kernel.judge_release(told.release) if told else ()
    found += kernel.judge_log(outcomes["kernel"])
    if told is None:
        found += _trouble(outcomes["memory"])
        return Report(tuple(found), outcomes, None, None, "", scan, time.monotonic() - begun)
    known, kept = _baseline(real.state, told, scan)
    verdict = memory.judge(told.memory, scan, known, limit)
    found += (*verdict.findings, *memory.judge_limit(told.limit, told.memory))
    return Report(tuple(found), outcomes, verdict, known, kept, scan, time.monotonic() - begun)


def probes(places: Sequence[Places], environ: Mapping[str, str], limit: int) -> Iterator[Probe]:
    """Name every question and how long it may take."""
    real, home = places[0], environ.get("HOME")
    for place in places:
        name = _prefix(place)
        yield Probe(f"{name}cards", partial(cards.look, place), _SHORT_S)
        yield Probe(f"{name}slots", partial(view.look, place), _ENGINES_S)
        yield Probe(f"disk {name}caches", partial(disks.look, f"{name}caches", place.cache), _SHORT_S)
    yield Probe("runs", partial(slots.look_at_runs, real.state), _ENGINES_S)
    yield Probe("containers", engines.look, _ENGINES_S)
    yield Probe("disk state", partial(disks.look, "state", real.state), _SHORT_S)
    for engine in ("docker", "podman"):
        yield Probe(f"disk {engine}", partial(_look_at_root, engine, Path(home) if home else None), _SHORT_S)
    yield Probe("kernel", read_kernel_log, _LOG_S)
    yield Probe("memory", partial(_look_at_memory, real.roots, limit), _SHORT_S)


def _prefix(place: Places) -> str:
    return "simulated " if place.simulated else ""


def _look_at_root(engine: str, home: Path | None) -> DiskSeen | None:
    root = container_root(engine, Settings(home=home))
    return disks.look(engine, root) if root else None


def _look_at_memory(roots: Roots, limit: int) -> MemorySeen:
    seen = read_memory(roots)
    if seen.known and seen.residual >= limit:
        time.sleep(_AGAIN_S)
        again = read_memory(roots)
        seen = again if again.known and again.residual < seen.residual else seen
    return MemorySeen(seen, memory_limit(roots), _boot(roots), kernel.release(roots.proc))


def _boot(roots: Roots) -> str:
    try:
        return boot_id(roots.proc)
    except HostError:
        return ""  # then no baseline is this boot's


def _baseline(state: Path, told: MemorySeen, scan: Scan) -> tuple[Baseline | None, str]:
    known = baseline.load(state, told.boot)
    if not told.boot:
        return None, ""
    new = baseline.renew(known, told.memory, scan, told.boot)
    return new, baseline.keep(state, new) if new is not None and new != known else ""


def _cards_and_slots(place: Places, outcomes: Mapping[str, Outcome], scan: Scan) -> Iterator[Finding]:
    seen, looked = outcomes[f"{_prefix(place)}cards"], outcomes[f"{_prefix(place)}slots"]
    held = None if scan.blind else bool(scan.holders)
    yield from _or_trouble(seen, partial(cards.judge, simulated=place.simulated, held=held))
    yield from _or_trouble(looked, partial(slots.judge_slots, simulated=place.simulated))


def _or_trouble(outcome: Outcome, judge: Callable[..., Iterator[Finding]]) -> Iterator[Finding]:
    if not outcome.answered:
        yield from _trouble(outcome)
    elif outcome.value is not None:
        yield from judge(outcome.value)


def _trouble(outcome: Outcome) -> Iterator[Finding]:
    code = "probe.late" if outcome.late else "probe.failed"
    yield finding(code, f"{outcome.name}: {outcome.trouble}", subject=outcome.name, hint=outcome.hint or None)
