"""Kill -9 at random moments: after some of the time that a thing takes, or at some call of it to the system or to C."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = int(os.environ.get("TTX_TEST_ROUNDS", "8"))  # the check `cache` asks for more
SEED = int(os.environ.get("TTX_TEST_SEED") or random.SystemRandom().randrange(10**6))


@dataclass
class Killer:
    """Kills a piece of work, which was done once to see how long it takes. ``killed``: how often it was at work."""

    work: Callable[[], object]
    seed: int = SEED
    killed: int = 0
    rounds: int = 0

    def __post_init__(self) -> None:
        print(f"TTX_TEST_SEED={self.seed}")  # noqa: T201 - so that a failure can be repeated
        self._dice = random.Random(self.seed)  # noqa: S311 - moments, not secrets
        start = time.monotonic()
        self._calls = self._whole()
        self._seconds = time.monotonic() - start

    def kill(self) -> None:
        """Do it in a process of its own, and kill that: by time and by calls in turn."""
        self.rounds += 1
        if self.rounds % 2:
            pid = _child(self.work)
            time.sleep(self._dice.uniform(0, self._seconds))
            os.kill(pid, signal.SIGKILL)
        else:
            moment = self._dice.randint(1, self._calls)
            pid = _child(lambda: _counted(self.work, moment))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in {0, -signal.SIGKILL}
        self.killed += code != 0

    def check(self) -> None:
        """See that kills met it at work: all those at a call, unless it takes another way each time."""
        assert self.killed >= self.rounds // 4, f"{self.killed} of {self.rounds} kills met it at work"

    def _whole(self) -> int:
        read, write = os.pipe()
        pid = _child(lambda: os.write(write, b"%d" % _counted(self.work, 0)))
        os.close(write)
        with os.fdopen(read, "rb") as told:
            calls = int(told.read())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return calls


def _child(work: Callable[[], object]) -> int:
    """Do something in a process of its own, which says when it begins; return its pid."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(told, b"x")
            work()
            code = 0
        finally:
            os._exit(code)
    os.close(told)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    return pid


def _counted(work: Callable[[], object], last: int) -> int:
    """Do it, and be killed at its so manieth call of a function that is written in C; return how many there were."""
    calls = 0

    def watch(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        if event == "c_call":
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls
