"""Whether a container's first process would hear a request to stop.

The first process of a pid namespace gets no signal that it has no handler for, not even one whose default is to end it
(pid_namespaces(7)). So SIGTERM is lost on an engine that still imports its modules: it would boot on, and be killed as
it opens its cards when the grace is over.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from ttstack.host import process
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    import signal
    from pathlib import Path

    from ttstack.host.types import ProcessId

# A handler, or a signal that is kept for sigwait or a signalfd, as the small init programs of containers do.
_MASKS = frozenset({"SigCgt", "SigBlk"})


def hears(leader: ProcessId | None, number: signal.Signals, proc: Path = process.PROC) -> bool:
    """Say whether a signal would do anything to a first process; yes when that cannot be learned."""
    if leader is None:
        return True
    try:
        text = (proc / str(leader.pid) / "status").read_text(encoding="utf-8", errors="replace")
        if process.identify(leader.pid, proc) != leader:
            return True  # it is gone
        masks = [
            int(mask, 16) for name, _, mask in (line.partition(":") for line in text.split("\n")) if name in _MASKS
        ]
    except (OSError, ValueError):
        return True
    return not masks or any(mask >> (number - 1) & 1 for mask in masks)


def wait_until_it_hears(leader: ProcessId | None, number: signal.Signals, grace_s: int) -> int:
    """Wait, for the grace at most, until a first process hears the signal; return the rest of it, seconds."""
    begun = time.monotonic()
    wait_until(lambda: hears(leader, number), grace_s)
    return math.ceil(max(0.0, grace_s - (time.monotonic() - begun)))
