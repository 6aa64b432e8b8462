"""The kernel: does its release leak, and what did it say since boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.doctor.codes import finding
from ttstack.doctor.versions import leaks_pins
from ttstack.host.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ttstack.doctor.types import Finding
    from ttstack.host.deadline import Outcome
    from ttstack.host.kernel_log import KernelLog, MessageKind

_CODES: dict[MessageKind, str] = {
    "oom_kill": "kernel.oom-kill",
    "pin_failure": "kernel.pin-failure",
    "driver": "kernel.driver",
    "hung_task": "kernel.hung-task",
}


def release(proc: Path) -> str:
    """Give the kernel's release, such as 6.12.30; "" when it is not told. Raises HostError."""
    return read_text(proc / "sys" / "kernel" / "osrelease") or ""


def judge_release(name: str) -> Iterator[Finding]:
    """Say whether this kernel is known to leak."""
    if leaks_pins(name):
        yield finding("kernel.leaks-pins", f"kernel {name}: 6.11 to 6.12.0 leak pinned pages", subject=name)


def judge_log(outcome: Outcome) -> Iterator[Finding]:
    """Say what of this boot's messages matters."""
    if not outcome.answered:
        hint = outcome.hint or ("see: journalctl --disk-usage" if outcome.late else None)
        yield finding("kernel.unread", f"kernel messages: {outcome.trouble}", hint=hint)
        return
    log: KernelLog = outcome.value
    for kind, code in _CODES.items():
        if count := log.counts.get(kind, 0):
            newest = [message for message in log.messages if message.kind == kind][-1]
            text = f"{count} time(s) since boot, last at {newest.at_s:.0f} s: {newest.text}"
            yield finding(code, text)
    if not log.counts:
        yield finding("kernel.quiet", f"nothing of note in this boot's messages ({log.source})")
