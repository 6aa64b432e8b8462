"""Waiting for something to become true, with an end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.03
_SUPERVISOR_S = 10.0


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until the answer is yes; False when it was not within this time. What it raises goes on."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_S)
    return True


def longest_stop(grace_s: float) -> float:
    """Say what a supervised stop may take, seconds: the grace for the first process, then for those that are left."""
    return 2 * grace_s + _SUPERVISOR_S
