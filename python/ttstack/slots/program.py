"""Run a program, or nobody at all, while slots are held: signals reach whom they mean."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ttstack.slots.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import NoReturn

    from ttstack.slots.keeper import Keeper

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = {*_ENDING, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
_KILLED_BY = 128  # plus the signal's number, as shells and flock(1) have it


def find_program(name: str) -> None:
    """Raise ProgramError when there is no such program: before a card is waited for."""
    if shutil.which(name) is None:
        there = os.path.exists(name)  # noqa: PTH110 - false, not an error, for a name that no path can have
        raise ProgramError(f"{name!r} cannot be run" if there else f"there is no program {name!r}", found=there)


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, what asks us to end raises KeyboardInterrupt, so that what is held is given back. Main thread only."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, now in before.items():
        if now != signal.SIG_IGN:  # nohup(1) and the like have their will
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, now in before.items():
            signal.signal(number, now)


@contextmanager
def blocked(numbers: set[signal.Signals]) -> Iterator[set[int]]:
    """Let signals wait inside; yields the mask that was before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield {int(number) for number in mask}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def run_program(
    argv: Sequence[str],
    environ: Mapping[str, str],
    heirlooms: Sequence[int] = (),
    beside: Callable[[int], Keeper] | None = None,
) -> int:
    """Run a program to its end; return its exit code, or 128 and the number of the signal that ended it.

    It has our terminal, our process group and the descriptors that we inherited; of our own it gets ``heirlooms``.
    ``beside`` starts a keeper of what we hold for it, before it runs. Signals sent to us are sent on. Those of the
    terminal (Ctrl-C) reach it by themselves. Raises ProgramError.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as it may have been, the kernel would reap for us
    with blocked({*_PASSED_ON, signal.SIGCHLD}) as mask:
        start, told = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            _await(start)
            _become(argv, environ, heirlooms, mask, told[1])
        os.close(start[0])
        os.close(told[1])
        keeper = None
        try:
            if beside is not None:
                program = os.pidfd_open(pid)
                keeper = beside(program)
                os.close(program)
            os.write(start[1], b"x")  # without it, as when we are killed before, it ends unstarted
            os.close(start[1])
            with os.fdopen(told[0], "rb") as trouble:
                error = trouble.read()
            if error:
                os.waitpid(pid, 0)
                raise ProgramError(f"cannot run {argv[0]!r}: {os.strerror(int(error))}", found=True)
            return _attend(pid)
        finally:
            if keeper is not None:
                keeper.end()


def _await(start: tuple[int, int]) -> None:
    """Wait to be told to go on; end when who would tell has ended."""
    os.close(start[1])
    if not os.read(start[0], 1):
        os._exit(1)


def _become(
    argv: Sequence[str], environ: Mapping[str, str], heirlooms: Sequence[int], mask: set[int], told: int
) -> NoReturn:
    """Turn the process that was forked into the program. The pipe ``told`` says why that did not work."""
    try:
        for handle in heirlooms:
            os.set_inheritable(handle, True)  # noqa: FBT003 - os has it positional only
        for number in (*_ENDING, signal.SIGPIPE, signal.SIGXFSZ):  # the latter two are ignored by Python alone
            if number not in _ENDING or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(argv[0], list(argv), dict(environ))  # noqa: S606 - no shell is meant
    except OSError as error:
        os.write(told, str(error.errno).encode())
    finally:
        os._exit(127)


def _attend(pid: int) -> int:
    while True:
        told = signal.sigwaitinfo({*_PASSED_ON, signal.SIGCHLD})
        if told.si_signo != signal.SIGCHLD:
            # From the kernel (si_code > 0, sigaction(2)) the whole foreground process group has it.
            if told.si_code <= 0:
                os.kill(pid, told.si_signo)  # not reaped yet, so the number is still its own
            continue
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _KILLED_BY - code


def wait_for_end(seconds: float | None) -> None:
    """Wait until we are asked to end by SIGINT, SIGTERM or SIGHUP, or so long. ``None``: for ever."""
    numbers = {number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN}
    with blocked(numbers):
        if seconds is None:
            signal.sigwaitinfo(numbers)
            return
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if signal.sigtimedwait(numbers, min(left, 86400.0)) is not None:
                return
