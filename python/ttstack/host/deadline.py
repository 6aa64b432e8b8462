"""Questions that may never be answered: each is asked in a child process, which is left behind when it hangs.

A read from a card that is wedged, from a dead NFS server or a daemon that hangs can sleep in the kernel beyond any
signal (state D, ps(1)), and a thread that does cannot be ended at all. So the asker is a process of its own: killed at
its deadline, and if it does not end even then, nobody waits for it. It has none of our open files, so that a reader of
our output sees its end when *we* end.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ttstack.errors import TtxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

_MOST_FILES = 65536  # descriptors that are closed in a child
_TICK_S = 0.1  # how often a caller is told what is still waited for


@dataclass(frozen=True, slots=True)
class Probe:
    """A question. What ``ask`` returns must be picklable; it runs in a child, so it changes nothing in this process."""

    name: str
    ask: Callable[[], object]
    seconds: float  # how long it may take


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: ``value``, or in ``trouble`` one sentence on why there is none."""

    name: str
    value: Any = None
    trouble: str = ""
    hint: str = ""
    late: bool = False  # it did not answer in time
    seconds: float = 0.0  # what it took

    @property
    def answered(self) -> bool:
        """Whether there is a value."""
        return not self.trouble


@dataclass(slots=True)
class _Child:
    probe: Probe
    pid: int
    begun: float
    data: bytearray = field(default_factory=bytearray)


class Asked:
    """Questions under way. A context manager, so that no child outlives an interrupt unless nothing can end it."""

    def __init__(self, probes: Iterable[Probe]) -> None:
        self._selector = selectors.DefaultSelector()
        self._failed: list[Outcome] = []
        self._ended: list[int] = []  # children that were told to end, and whose end was not seen yet
        for probe in probes:
            try:
                self._start(probe)
            except OSError as error:
                self._failed.append(Outcome(probe.name, trouble=f"cannot be asked: {error.strerror}"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child, end in self._children():
            self._drop(child, end)
        self._bury()
        self._selector.close()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the questions without an answer yet."""
        return tuple(child.probe.name for child, _ in self._children())

    def next(self, seconds: float) -> list[Outcome]:
        """Wait at most so long; return what was answered, failed or ran out of time meanwhile."""
        done, self._failed = self._failed, []
        children = self._children()
        if not children or done:
            return done
        left = min(child.begun + child.probe.seconds for child, _ in children) - time.monotonic()
        for key, _ in self._selector.select(max(0.0, min(seconds, left))):
            done += self._read(key.data, key.fd)
        now = time.monotonic()
        for child, end in self._children():
            if now >= child.begun + child.probe.seconds:
                self._drop(child, end)
                done.append(_late(child))
        return done

    def _start(self, probe: Probe) -> None:
        ours, theirs = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        if pid == 0:
            _answer(probe, theirs)
        with suppress(OSError):  # it may have done so itself, and ended
            os.setpgid(pid, pid)
        os.close(theirs)
        os.set_blocking(ours, False)
        self._selector.register(ours, selectors.EVENT_READ, _Child(probe, pid, time.monotonic()))

    def _children(self) -> list[tuple[_Child, int]]:
        return [(key.data, key.fd) for key in self._selector.get_map().values()]

    def _read(self, child: _Child, end: int) -> list[Outcome]:
        with suppress(BlockingIOError):
            while block := os.read(end, 1 << 20):
                child.data += block
            self._drop(child, end)
            return [_outcome(child)]
        return []

    def _drop(self, child: _Child, end: int) -> None:
        """End a child, if it can be ended; never wait for one that cannot."""
        self._selector.unregister(end)
        os.close(end)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # it, and what it started
        self._ended.append(child.pid)
        self._bury()

    def _bury(self) -> None:
        for pid in list(self._ended):
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self._ended.remove(pid)


def gather(probes: Iterable[Probe], *, waiting: Callable[[Sequence[str]], None] = lambda _: None) -> dict[str, Outcome]:
    """Ask all at once; return every outcome by name, in the order of the probes, by the longest deadline at the latest.

    ``waiting`` is told about ten times a second which have not answered yet. Call this before threads are started: the
    children are forks of this process. Raises nothing of the questions' own.
    """
    probes = list(probes)
    with Asked(probes) as asked:
        found = {outcome.name: outcome for outcome in asked.next(0)}
        while left := asked.waiting:
            waiting(left)
            found |= {outcome.name: outcome for outcome in asked.next(_TICK_S)}
    return {probe.name: found[probe.name] for probe in probes}


def late_text(seconds: float) -> str:
    """Say that something did not answer in time."""
    return f"did not answer in {seconds:g} s"


def _late(child: _Child) -> Outcome:
    seconds = child.probe.seconds
    return Outcome(child.probe.name, trouble=late_text(seconds), late=True, seconds=time.monotonic() - child.begun)


def _outcome(child: _Child) -> Outcome:
    seconds = time.monotonic() - child.begun
    try:
        value, trouble, hint = pickle.loads(child.data)  # noqa: S301 - our own fork wrote it into a pipe of ours
    except (pickle.UnpicklingError, EOFError):
        return Outcome(child.probe.name, trouble="ended without an answer", seconds=seconds)
    return Outcome(child.probe.name, value, trouble, hint, seconds=seconds)


def _answer(probe: Probe, end: int) -> None:
    """Be the child: ask, write the answer, end. Never returns, whatever happens: two of us must not go on."""
    try:
        os.setpgid(0, 0)  # as the parent does, whoever is first: then the group is there when it is killed
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _let_go(end)
        with os.fdopen(end, "wb") as pipe:
            pipe.write(_packed(probe))
    finally:
        os._exit(0)


def _let_go(kept: int) -> None:
    """Close everything of the parent's: a child that hangs must keep no pipe, lock or terminal of it."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.closerange(3, kept)
    os.closerange(kept + 1, _MOST_FILES)


def _packed(probe: Probe) -> bytes:
    try:
        return pickle.dumps((probe.ask(), "", ""))
    except TtxError as error:
        return pickle.dumps((None, error.message, error.hint))
    except Exception as error:  # noqa: BLE001 - one question that fails must not hide the others
        return pickle.dumps((None, f"failed: {type(error).__name__}: {error}", ""))
