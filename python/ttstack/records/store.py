"""The append-only store: one JSON line per write, whole or fenced off, never two of them mixed."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ttstack.host.files import is_at, sync_folder
from ttstack.records.errors import RecordsError
from ttstack.records.log import Log, nobody, read_stream
from ttstack.records.parse import closed
from ttstack.records.quotable import reasons_against
from ttstack.records.schema import violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ttstack.records.types import Opened

LOCK_TIMEOUT_S = 30.0
_POLL_S = 0.005
_MODE = 0o644


class Store:
    """The records of one host, in one file.

    A line is written by one ``write`` on an O_APPEND descriptor under a lock of the file itself, and synced. A part
    that a killed writer or a full disk left behind stays where it is: the next line starts on a line of its own.
    """

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.path = path
        self._timeout = lock_timeout_s

    def append(self, line: Mapping[str, object], unless: Callable[[Log], bool] | None = None) -> bool:
        """Write one line and wait until it is on the disk.

        With ``unless`` the records are read first, under the same lock; when it says so, nothing is written and the
        answer is False.

        Raises RecordsError when the line is not of the schema, sets ``quotable`` to something that does not follow
        from the rest (nothing is written then), or could not be written whole and synced; readers skip a torn part.
        """
        return self._append(encode(line), None if unless is None else lambda fd: unless(_log(fd)))

    def _append(self, data: bytes, unless: Callable[[int], bool] | None) -> bool:
        try:
            with _locked(self.path, self._timeout) as (fd, made):
                if unless is not None and unless(fd):
                    return False
                _write(fd, data)
                os.fsync(fd)
                if made:
                    sync_folder(self.path.parent)
                return True
        except OSError as error:
            raise RecordsError(
                f"cannot write a record to {self.path}: {error.strerror or error}",
                hint="what was written of it may be torn, readers skip that; free space or mend the permissions",
                reason="records_write",
            ) from error

    def close(self, line: Mapping[str, object]) -> bool:
        """Write the closing line of a run, unless it has one already; False then. As ``append`` else.

        Cheaper than ``unless``, as hardly a line is looked at.
        """
        data = encode(line)
        mark = str(line["run"])
        return self._append(data, lambda fd: _is_closed(fd, mark))

    def read(self, alive: Callable[[Opened], bool] = nobody) -> Log:
        """Read all records; ``alive`` says whether somebody lives who will close a run that was not closed.

        A file that does not exist holds no records. Raises RecordsError when it cannot be read.
        """
        try:
            # O_NONBLOCK: a pipe in the file's place is told below, instead of being waited for.
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return Log((), ())
        except OSError as error:
            raise RecordsError(f"cannot read {self.path}: {error.strerror}", reason="records_read") from error
        with os.fdopen(fd, "rb") as stream:
            _regular(fd, self.path)
            return read_stream(stream, _whole_size(fd, self._timeout), alive)


def encode(line: Mapping[str, object]) -> bytes:
    """Make the bytes of one line, newline included, after the schema and the rule of ``quotable`` have accepted it."""
    wrong = violation(line, strict=True) or _set_by_hand(line)
    if wrong:
        raise RecordsError(f"this record is not of schema 1: {wrong}", reason="records_schema")
    try:
        text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise RecordsError(f"this record cannot be written as JSON: {error}", reason="records_schema") from error
    # A lone surrogate (a file name that is not UTF-8) must not cost the record.
    return text.encode("utf-8", "replace") + b"\n"


def _set_by_hand(line: Mapping[str, object]) -> str | None:
    if line["kind"] != "close":
        return None
    given = closed(line)
    against = reasons_against(given.outcome, given.identity, given.measured)
    if (given.quotable, given.quotable_reasons) != (not against, against):
        return "quotable is computed (ttstack.records.build.closing), it cannot be set"
    return None


@contextmanager
def _locked(path: Path, timeout: float) -> Iterator[tuple[int, bool]]:
    """Open the file for appending and hold its lock; yield the descriptor and whether the file is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    while True:
        fd, made = _open(path)
        try:
            _regular(fd, path)
            if not _lock(fd, fcntl.LOCK_EX, deadline):
                raise RecordsError(
                    f"{path} stayed locked for {timeout:g} s", hint=f"who has it: lslocks, or fuser {path}"
                )
            if is_at(fd, path):  # else it was moved away while we waited (log rotation)
                yield fd, made
                return
        finally:
            os.close(fd)


def _open(path: Path) -> tuple[int, bool]:
    # O_NOFOLLOW: a link in a folder that others may write to must not choose the file that root appends to.
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags), False
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, _MODE), True


def _regular(fd: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise RecordsError(f"{path} is not a regular file")


def _lock(fd: int, how: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        else:
            return True


def _write(fd: int, data: bytes) -> None:
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        data = b"\n" + data
    # One write is what happens. A short one means a full disk or a limit; asking again tells which, by its error, and
    # the lock keeps others out meanwhile.
    while data:
        data = data[os.write(fd, data) :]


def _log(fd: int) -> Log:
    """Read what is in a file that is locked: by a descriptor of its own the lock would keep us out as well."""
    with os.fdopen(os.dup(fd), "rb") as stream:
        stream.seek(0)
        return read_stream(stream, os.fstat(fd).st_size, nobody)


def _is_closed(fd: int, run: str) -> bool:
    """Whether a run has a closing line, in a file that is locked. Only lines that look like it are parsed."""
    name = run.encode()
    with os.fdopen(os.dup(fd), "rb") as stream:
        stream.seek(0)
        for raw in stream:
            if name in raw and b'"close"' in raw:
                try:
                    line = json.loads(raw)
                except (ValueError, RecursionError):
                    continue  # torn: it closes nothing
                whose = (line.get("kind"), line.get("run")) if isinstance(line, dict) else ()
                if whose == ("close", run) and violation(line, strict=False) is None:
                    return True
    return False


def _whole_size(fd: int, timeout: float) -> int:
    """How much of the file no writer is busy with; a reader does not count a line in the making as torn."""
    _lock(fd, fcntl.LOCK_SH, time.monotonic() + timeout)  # a writer that hangs must not hide the records: read anyway
    size = os.fstat(fd).st_size
    fcntl.flock(fd, fcntl.LOCK_UN)
    return size
