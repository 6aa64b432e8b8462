"""The append-only store: one JSON line per write, whole or fenced off, never two of them mixed."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

from ttstack.host.files import is_at, sync_folder
from ttstack.records.errors import RecordsError
from ttstack.records.line import Line, read_line
from ttstack.records.log import Log, nobody, read_stream
from ttstack.records.parse import closed
from ttstack.records.quotable import reasons_against
from ttstack.records.schema import violation
from ttstack.records.seal import PLACEHOLDER, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from ttstack.records.types import Opened

LOCK_TIMEOUT_S = 30.0
_POLL_S = 0.005
_MODE = 0o644
_BUFFER = 1 << 20  # bytes; lines are thousands of bytes long


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

    def extend(self, choose: Callable[[BinaryIO, int], Iterable[bytes]]) -> None:
        """Write lines as they are, newline included: those that ``choose`` picks after a look at what is there.

        It is given a stream of the records and its size in bytes, and nobody else writes meanwhile. Raises RecordsError
        when not all could be written; those that were are whole.
        """
        with self._writing() as fd:
            with _stream(fd) as stream:
                chosen = choose(stream, os.fstat(fd).st_size)
            for data in chosen:
                _write(fd, data)

    def _append(self, data: bytes, unless: Callable[[int], bool] | None) -> bool:
        with self._writing() as fd:
            if unless is not None and unless(fd):
                return False
            _write(fd, data)
            return True

    @contextmanager
    def _writing(self) -> Iterator[int]:
        try:
            with _locked(self.path, self._timeout) as (fd, made):
                yield fd
                os.fsync(fd)
                if made:
                    sync_folder(self.path.parent)
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

    def read(self, alive: Callable[[Opened], bool] = nobody, *, thorough: bool = True) -> Log:
        """Read all records; ``alive`` says whether somebody lives who will close a run that was not closed.

        Without ``thorough`` it is quick, as ``read_stream`` says; whoever looks at a run closely asks for its faults.
        A file that does not exist holds no records. Raises RecordsError when it cannot be read.
        """
        with self.stream() as (stream, size):
            return read_stream(stream, size, alive, thorough=thorough)

    @contextmanager
    def stream(self) -> Iterator[tuple[BinaryIO, int]]:
        """Open the records for reading: a stream, and how many bytes of it hold lines that are finished.

        A file that does not exist is empty. Raises RecordsError when it cannot be read.
        """
        try:
            # O_NONBLOCK: a pipe in the file's place is told below, instead of being waited for.
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            yield BytesIO(), 0
            return
        except OSError as error:
            raise RecordsError(f"cannot read {self.path}: {error.strerror}", reason="records_read") from error
        try:
            _regular(fd, self.path)
            size = _whole_size(fd, self._timeout)
        except BaseException:
            os.close(fd)
            raise
        with os.fdopen(fd, "rb", _BUFFER) as stream:
            yield stream, size


def encode(line: Mapping[str, object]) -> bytes:
    """Make the bytes of one line, newline and sum included, after the schema and the rule of ``quotable`` accept it."""
    line = {name: value for name, value in line.items() if name != "sum"}
    wrong = violation({**line, "sum": PLACEHOLDER}, strict=True) or _set_by_hand(line)
    if wrong:
        raise RecordsError(f"this record is not of schema 1: {wrong}", reason="records_schema")
    try:
        text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise RecordsError(f"this record cannot be written as JSON: {error}", reason="records_schema") from error
    # A lone surrogate (a file name that is not UTF-8) must not cost the record.
    return seal(text.encode("utf-8", "replace"))


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
            fcntl.flock(fd, fcntl.LOCK_UN)  # closing is not enough while a reader under the lock has a copy
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


@contextmanager
def _stream(fd: int) -> Iterator[BinaryIO]:
    """Read what is in a file that is locked: by a descriptor of its own the lock would keep us out as well."""
    with os.fdopen(os.dup(fd), "rb", _BUFFER) as stream:
        stream.seek(0)
        yield stream


def _log(fd: int) -> Log:
    with _stream(fd) as stream:
        return read_stream(stream, os.fstat(fd).st_size, nobody)


def _is_closed(fd: int, run: str) -> bool:
    """Whether a run has a closing line, in a file that is locked. Only lines that look like it are parsed."""
    name = run.encode()
    with _stream(fd) as stream:
        for raw in stream:
            if name in raw and b'"close"' in raw:
                line = read_line(0, raw)  # what is torn closes nothing
                if isinstance(line, Line) and (line.kind, line.run) == ("close", run):
                    return True
    return False


def _whole_size(fd: int, timeout: float) -> int:
    """How much of the file no writer is busy with; a reader does not count a line in the making as torn."""
    _lock(fd, fcntl.LOCK_SH, time.monotonic() + timeout)  # a writer that hangs must not hide the records: read anyway
    size = os.fstat(fd).st_size
    fcntl.flock(fd, fcntl.LOCK_UN)
    return size
