"""Between a ttx and the supervisor of its run: a socket, which also tells each side that the other is gone.

Messages are JSON objects with an ``op``: ``start`` (with the descriptors of the slot and, as the last, the cache's),
``stop``, ``leave`` (the supervisor goes on alone and closes the record), ``done`` (the record is closed, nothing is
left to do).
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host import process
from ttstack.run.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.host.types import ProcessId
    from ttstack.run.state import RunFolder

_MAX_FDS = 128  # two for each of 32 cards, one for older drivers and one for the cache
_MAX_MESSAGE = 4096


class Link:
    """A ttx's end: the supervisor that it started."""

    def __init__(self, popen: subprocess.Popen[bytes], end: socket.socket) -> None:
        self._popen = popen
        self._end = end
        name = process.identify(popen.pid)
        if name is None:  # not reaped yet, so the number is still its own
            raise RunError("the supervisor is gone before it began", reason="supervisor_died")
        self.process: ProcessId = name

    def alive(self) -> bool:
        """Whether the supervisor runs."""
        return self._popen.poll() is None

    def send(self, op: str, fds: Sequence[int] = ()) -> None:
        """Tell the supervisor something; to one that is gone it is told in vain, as ``alive`` will say."""
        with suppress(ConnectionError):
            data = json.dumps({"op": op}).encode()
            if fds:
                socket.send_fds(self._end, [data], list(fds))
            else:
                self._end.send(data)

    def close(self) -> None:
        """Hang up. A supervisor that was told neither ``leave`` nor ``done`` takes it that we died."""
        self._end.close()

    def wait(self, seconds: float) -> bool:
        """Wait until the supervisor has ended; False when it did not in this time."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def spawn(folder: RunFolder, *, adopting: bool = False) -> Link:
    """Start a run's supervisor, in a session of its own, so that it outlives the terminal. Raises RunError.

    ``adopting``: the engine runs already, and nobody waits for the supervisor, which closes the record in the end.
    """
    words = ["adopt"] if adopting else []
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, folder.supervisor_log.open("ab") as log:
        try:
            popen = subprocess.Popen(
                [sys.executable, "-m", "ttstack.run.supervisor", str(folder.path), str(theirs.fileno()), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                env={**os.environ, "PYTHONPATH": python_path()},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise RunError(f"cannot start the supervisor: {error.strerror}", reason="supervisor_died") from error
    return Link(popen, ours)


def python_path() -> str:
    """Make a PYTHONPATH under which a child finds this very package and its libraries, however ttx was started."""
    package = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(dict.fromkeys([package, *(path for path in sys.path if path)]))


@dataclass(slots=True)
class Orders:
    """The supervisor's end: what its owner has told it."""

    end: socket.socket
    fds: tuple[int, ...] | None = None  # the slot's descriptors and the cache's, once they came
    stop: bool = False
    left: bool = False
    done: bool = False
    gone: bool = False  # the owner hung up or died

    def poll(self, seconds: float) -> None:
        """Wait this long for a message and take in all that are there."""
        if self.gone:
            select.select([], [], [], seconds)
            return
        while not self.gone and select.select([self.end], [], [], seconds)[0]:
            self._receive()
            seconds = 0

    def _receive(self) -> None:
        try:
            data, ancillary, _, _ = self.end.recvmsg(_MAX_MESSAGE, socket.CMSG_SPACE(_MAX_FDS * 4))
        except ConnectionError:
            data, ancillary = b"", []
        if not data:
            self.gone = True
            return
        fds = array.array("i")
        for level, kind, block in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(block[: len(block) - len(block) % fds.itemsize])
        op = json.loads(data)["op"]
        self.stop = self.stop or op == "stop"
        self.left = self.left or op == "leave"
        self.done = self.done or op == "done"
        if op == "start":
            self.fds = tuple(fds)
