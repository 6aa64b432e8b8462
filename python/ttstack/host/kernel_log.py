"""What this boot's kernel said that matters here: memory that ran out, pins that failed, a driver in trouble.

``journalctl`` keeps all of a boot, where journald reads the kernel's log; ``dmesg`` has what its ring still holds.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ttstack.host.errors import HostError
from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MessageKind = Literal["oom_kill", "pin_failure", "driver", "hung_task"]
KEPT = 8  # messages of each kind, the newest
_LENGTH = 300  # characters of a message
_JOURNAL = ("journalctl", "--dmesg", "--boot", "--output=short-monotonic", "--no-pager")
# Every message that counts here is a warning or worse, which leaves most of a long log out.
_WORST = (*_JOURNAL, "--priority=warning")
_ANY = (*_JOURNAL, "--lines=1")
_RING = ("dmesg",)

_LINE = re.compile(r"\[ *(\d+\.\d+)\] (?:\S+ kernel: )?(.*)")
_CARD = r"tenstorrent (?:tenstorrent!)?\S+: .*"  # dev_err(): the driver's name and the device's
_KINDS: tuple[tuple[MessageKind, re.Pattern[str]], ...] = (
    # mm/oom_kill.c; before 5.0 it was Kill process
    ("oom_kill", re.compile(r"(?:Out of memory|Memory cgroup out of memory)\b.*: Kill(?:ed)? process \d+")),
    # tt-kmd memory.c
    (
        "pin_failure",
        re.compile(
            _CARD + r"(?:pin_user_pages_longterm failed|could only pin \d+ of|pages discontiguous at|dma_map_sg failed"
            r"|alloc_chained_sgt_for_pages failed|vzalloc failed for|discontiguous mapping|!= original length)"
        ),
    ),
    # tt-kmd blackhole.c, msgqueue.c, enumerate.c, wormhole.c
    (
        "driver",
        re.compile(
            _CARD
            + r"(?:NOC is likely hung|device gone\?|Timeout waiting for (?:ARC|space in ARC)|initialization failed"
            r"|Device is unresponsive|device is unresponsive|Failed to send ARC message|Timed out waiting for FW)"
        ),
    ),
    ("hung_task", re.compile(r"INFO: task .* blocked for more than \d+ seconds")),  # kernel/hung_task.c
)
_DENIED = ("insufficient permissions", "not seeing messages from", "operation not permitted", "permission denied")


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the kernel's log."""

    kind: MessageKind
    at_s: float  # seconds since boot
    text: str


@dataclass(frozen=True, slots=True)
class KernelLog:
    """What was found. ``counts`` are of all messages of a kind, ``messages`` the newest few of each."""

    source: str  # journalctl or dmesg
    messages: tuple[Message, ...]
    counts: dict[MessageKind, int]


@dataclass(frozen=True, slots=True)
class Said:
    """What a program printed."""

    code: int
    out: list[str]
    err: str


def run(argv: Sequence[str]) -> Said:
    """Run a program to its end, however long that takes; its lines. Raises FileNotFoundError and OSError."""
    environ = {**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0"}
    done = subprocess.run(list(argv), capture_output=True, stdin=subprocess.DEVNULL, check=False, env=environ)
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return Said(done.returncode, out.splitlines(), err)


def read_kernel_log(run: Callable[[Sequence[str]], Said] = run) -> KernelLog:
    """Read this boot's messages of the kernel. Raises HostError, with reason ``denied`` when this user may not.

    There is no deadline here: call it in a probe of ``host.deadline``.
    """
    troubles: list[HostError] = []
    for ask in (_journal, _ring):
        try:
            return ask(run)
        except HostError as error:
            troubles.append(error)
    told = "; ".join(error.message for error in troubles)
    if any(error.reason == "denied" for error in troubles):
        hint = "run it as root, or join the group systemd-journal"
        raise HostError(f"this user may not read the kernel's messages ({told})", hint=hint, reason="denied")
    raise HostError(f"the kernel's messages cannot be read: {told}")


def _journal(run: Callable[[Sequence[str]], Said]) -> KernelLog:
    lines = _ask(_WORST, run)
    # A journal that journald does not write the kernel's log into has no line of any priority.
    if not _any(lines) and not _any(_ask(_ANY, run)):
        raise HostError("journalctl has no messages of the kernel")
    return _read("journalctl", lines)


def _ring(run: Callable[[Sequence[str]], Said]) -> KernelLog:
    return _read("dmesg", _ask(_RING, run))


def _ask(argv: Sequence[str], run: Callable[[Sequence[str]], Said]) -> list[str]:
    try:
        said = run(argv)
    except FileNotFoundError:
        raise HostError(f"no {argv[0]} here") from None
    except OSError as error:
        raise HostError(f"{argv[0]} cannot be run: {error.strerror}") from error
    line = printable(next((line.strip() for line in said.err.splitlines() if line.strip()), ""))
    # journalctl exits with 0 although it left the system's journal out.
    if any(word in said.err.lower() for word in _DENIED):
        raise HostError(f"{argv[0]}: {line}", reason="denied")
    if said.code:
        raise HostError(f"{argv[0]} failed with exit {said.code}: {line}")
    return said.out


def _any(lines: Iterable[str]) -> bool:
    return any(_LINE.match(line) for line in lines)


def _read(source: str, lines: Iterable[str]) -> KernelLog:
    found: dict[MessageKind, list[Message]] = {}
    counts: Counter[MessageKind] = Counter()
    for line in lines:
        match = _LINE.match(line)
        kind = next((kind for kind, pattern in _KINDS if pattern.search(match[2])), None) if match else None
        if match and kind:
            counts[kind] += 1
            newest = found.setdefault(kind, [])
            newest.append(Message(kind, float(match[1]), printable(match[2][:_LENGTH])))
            del newest[:-KEPT]
    kept = sorted((message for each in found.values() for message in each), key=lambda message: message.at_s)
    return KernelLog(source, tuple(kept), dict(counts))
