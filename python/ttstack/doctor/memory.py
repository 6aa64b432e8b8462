"""The verdict on lost memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.doctor.codes import finding
from ttstack.doctor.errors import DoctorError
from ttstack.run.watch import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ttstack.doctor.types import Baseline, Finding, Scan
    from ttstack.host.memory import Limit, Memory

REBOOT_MB = 3072
_MIB = 1024 * 1024
_GB = 1_000_000_000
_NAMED = 3  # holders and reasons that a sentence has room for


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is lost; all numbers are bytes."""

    residual: int  # what nobody accounts for
    baseline: int  # of it, what was so when nothing had leaked; 0 when that is not known
    limit: int  # from which on a reboot is recommended
    findings: tuple[Finding, ...]

    @property
    def above(self) -> int:
        """What may be lost."""
        return max(0, self.residual - self.baseline)


def reboot_limit(environ: Mapping[str, str]) -> int:
    """Read $TTX_LEAK_REBOOT_MB (3072), in units of 1024 * 1024 bytes; return bytes. Raises DoctorError."""
    text = environ.get("TTX_LEAK_REBOOT_MB") or str(REBOOT_MB)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise DoctorError(
            f"TTX_LEAK_REBOOT_MB is {text!r}, which is no number of megabytes above 0",
            hint=f"unset it for the default of {REBOOT_MB}",
        )
    return int(text) * _MIB


def judge(memory: Memory, scan: Scan, baseline: Baseline | None, limit: int) -> Verdict:
    """Say whether memory is lost that only a reboot brings back."""
    known = 0 if baseline is None else baseline.residual
    verdict = Verdict(memory.residual, known, limit, ())
    found = [*_residual(memory, scan, verdict, known=baseline is not None), *_pins(memory, scan, verdict)]
    return Verdict(memory.residual, known, limit, (*found, *_low(memory)))


def _residual(memory: Memory, scan: Scan, verdict: Verdict, *, known: bool) -> Iterator[Finding]:
    if not memory.known:
        why = memory.foreign or f"/proc/meminfo has no {', '.join(memory.missing)}"
        yield finding("memory.unknown", f"lost memory cannot be told: {why}")
        return
    base = f"{_gb(verdict.baseline)} of it are this boot's baseline" if known else "no baseline is known in this boot"
    lost = f"{_gb(max(0, memory.residual))} of memory are unaccounted for ({base}{_pinned(memory)})"
    if verdict.above < verdict.limit:
        yield finding("memory.fine", lost, hint="")
        return
    if scan.holders:
        yield finding("memory.holder", f"{lost}; somebody has a card: {_few(scan.holders)}")
    if scan.blind:
        yield finding("memory.blind", f"{lost}; not all could be looked at: {_few(scan.blind)}")
    if scan.holders or scan.blind:
        return
    if memory.certain - verdict.baseline < verdict.limit:
        parts = ", ".join(f"{name} {_gb(size)}" for name, size in memory.unsure.items())
        yield finding("memory.unclear", f"{lost}; {parts} may explain it")
    elif not scan.cards:
        yield finding("memory.elsewhere", f"{lost}; this host has no card and no tt-kmd")
    else:
        text = f"REBOOT RECOMMENDED: {lost}, nobody has a card, and the limit is {_gb(verdict.limit)}"
        yield finding("memory.reboot", text)


def _pins(memory: Memory, scan: Scan, verdict: Verdict) -> Iterator[Finding]:
    """Pages of hugetlbfs that stay pinned are in no residual, as Hugetlb holds them."""
    if memory.pins is None or memory.pins.outstanding < verdict.limit:
        return
    if scan.holders or scan.blind or not scan.cards or (memory.known and verdict.above >= verdict.limit):
        return  # they are somebody's, or the residual has told already
    yield finding("memory.pins", f"{_gb(memory.pins.outstanding)} are pinned for devices, and nobody has a card")


def _low(memory: Memory) -> Iterator[Finding]:
    floor = DEFAULT_LIMITS.memory_floor
    if memory.available is not None and memory.available < floor:
        text = f"{_gb(memory.available)} of memory are available, under the floor of {_gb(floor)}"
        yield finding("memory.low", text)


def judge_limit(limit: Limit | None, memory: Memory) -> Iterator[Finding]:
    """Name the cgroup that holds this process below the host's memory."""
    if limit is not None and limit.bytes < memory.total:
        text = f"{limit.file} of the cgroup {limit.cgroup} allows {_gb(limit.bytes)} of the host's {_gb(memory.total)}"
        yield finding("memory.limited", text, subject=limit.cgroup)


def _pinned(memory: Memory) -> str:
    return f"; {_gb(memory.pins.outstanding)} are pinned for devices" if memory.pins else ""


def _few(texts: tuple[str, ...]) -> str:
    more = f", and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more


def _gb(count: int) -> str:
    return f"{count / _GB:.2f} GB"
