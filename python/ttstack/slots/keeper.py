"""Keeps the cards of a program whose ttx was killed, for as long as the program runs.

``ttx slot run`` holds the slot for its program, which inherits nothing of it. A SIGKILL to ttx would free the slot
under the running program; so a small process stands beside it, with copies of the keys. It ends with the program, or is
ended by ttx. When ttx is gone it puts its own name into the lock files and does what ttx would have done: SIGTERM, by
``ttx slot release``, is sent on to the program. Neither the program nor what it leaves behind has the keys.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ttstack.host.process import myself

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.slots.claim import Claim
    from ttstack.slots.slot import Slot

_SENT_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Keeper:
    """The process beside a program."""

    pid: int

    def end(self) -> None:
        """End it, and wait until its copies of the keys are closed: the slot is ours alone then."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # our child, not reaped yet, so the number is still its own
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def keep(slot: Slot, claim: Claim) -> Callable[[int], Keeper]:
    """Return what starts a keeper of this slot for a program: it is given a pidfd of the program, and returns it."""

    def start(program: int) -> Keeper:
        owner = os.pidfd_open(os.getpid())
        pid = os.fork()
        if pid:
            os.close(owner)
            return Keeper(pid)
        code = 1
        try:
            _attend(slot, claim, program, owner)
            code = 0
        finally:
            os._exit(code)  # nothing of ttx's own ways out is ours: no output, no callbacks

    return start


def _attend(slot: Slot, claim: Claim, program: int, owner: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _SENT_ON)
    os.setsid()  # what a terminal sends is not for us
    _close_all_but({*slot.fds, program, owner})
    poll = select.poll()
    poll.register(program, select.POLLIN)
    poll.register(owner, select.POLLIN)
    gone = {handle for handle, _ in poll.poll()}
    if program not in gone:
        for number in _SENT_ON:
            signal.signal(number, lambda told, _: _send_on(program, told))
        slot.write(replace(claim, process=myself()))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SENT_ON)
        poll.unregister(owner)
        poll.poll()
        slot.release()
    # Else the end of the program is ttx's to tell; if it is gone, too, the kernel frees what we have.


def _send_on(program: int, number: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(program, number)


def _close_all_but(kept: set[int]) -> None:
    """Close what we have of ttx's: a pipe whose end somebody waits for must not stay open through us."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers are what is wanted
        if int(name) not in kept:
            with suppress(OSError):  # that of the listing itself
                os.close(int(name))
