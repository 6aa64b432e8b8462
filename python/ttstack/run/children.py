"""Children that only watch, and so end with whoever started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def start_watcher(argv: Sequence[str], output: int) -> subprocess.Popen[bytes]:
    """Start a program, in a process group of its own, that the kernel kills when we are gone (prctl(2)).

    Its output and its errors go to the descriptor ``output``. To be called from the main thread: the kernel minds the
    thread. Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)  # loaded here: after a fork as little as may be is done
    us = os.getpid()

    def end_with_us() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != us:
            os._exit(1)  # we were gone before it was asked for

    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        process_group=0,
        preexec_fn=end_with_us,  # noqa: PLW1509 - a supervisor has one thread
    )
