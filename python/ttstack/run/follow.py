"""A container's log as a file: from its first byte, each byte once, though whoever copies it may die."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ttstack.run.children import start_watcher

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

_AGAIN_S = 1.0  # between two attempts
_LAST_S = 10.0  # what the copy may take after the container's end


class LogCopy:
    """Copies what ``argv`` (``docker logs --follow ID``) prints into a file.

    ``logs`` always begins at the first byte. So a copy that replaces one which died (the daemon was restarted, or we
    are another supervisor) is written beside the log and renamed over it as soon as it holds as much: who reads the log
    at an offset sees neither a gap nor a line twice. Should the beginning have been rotated away by then, it is added
    at the end.
    """

    def __init__(self, argv: Sequence[str], path: Path, *, fresh: bool) -> None:
        self._argv = list(argv)
        self._path = path
        self._beside = path.with_name(f"{path.name}.again")
        self._child: subprocess.Popen[bytes] | None = None
        self._doubted = False
        self._next = 0.0
        self._end: float | None = None
        self._done = False
        self._start(path if fresh else self._beside)

    def _start(self, into: Path) -> None:
        self._close()
        self._doubted = False
        self._next = time.monotonic() + _AGAIN_S
        into.unlink(missing_ok=True)  # whoever still writes to it writes to nobody
        file = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._child = start_watcher(self._argv, file)
        except OSError:
            self._child = None  # tried again
        finally:
            os.close(file)

    def keep_up(self) -> None:
        """Start again when the copying ended though the container lives. To be called often."""
        self._promote()
        if (self._child is None or self._child.poll() is not None) and time.monotonic() >= self._next:
            self._start(self._beside)

    def doubt(self) -> None:
        """Hear that the daemon was away: an end of the copying is no proof that it was complete."""
        self._doubted = True

    def finished(self) -> bool:
        """Whether the copy is complete, asked once the container is over. It is given up after a while."""
        if self._done:
            return True
        self._end = self._end or time.monotonic()
        late = time.monotonic() > self._end + _LAST_S
        code = None if self._child is None else self._child.poll()
        if code is None and self._child is not None and not late:
            self._promote()
            return False
        if (code != 0 or self._doubted) and not late:
            if time.monotonic() >= self._next:
                self._start(self._beside)
            return False
        self._close()
        self._promote(last=True)
        self._done = True
        return True

    def _promote(self, *, last: bool = False) -> None:
        with suppress(FileNotFoundError):
            new = self._beside.stat().st_size
            old = self._path.stat().st_size if self._path.exists() else 0
            if new >= old:
                self._beside.replace(self._path)
            elif last:
                with self._path.open("ab") as log:
                    log.write(b"\n(ttx: the copy of this log broke off; what the container still has of it:)\n")
                    log.write(self._beside.read_bytes())
                self._beside.unlink()

    def _close(self) -> None:
        if self._child is not None:
            if self._child.poll() is None:
                self._child.kill()
            self._child.wait()
            self._child = None
