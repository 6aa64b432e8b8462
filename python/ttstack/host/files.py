"""Files that others read while we write: whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from ttstack.host.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY_MODE = 0o755
FILE_MODE = 0o644


def make_directory(path: Path) -> Path:
    """Make a folder and its parents; return it. Raises HostError with the way out."""
    try:
        path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"cannot make the folder {path}: {error.strerror}",
            hint="choose another place with TTX_STATE, TTX_LOCKS or TTX_CACHE, or run as a user who may write there",
        ) from error
    return path


def write_atomic(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Put ``data`` at ``path`` so that a reader, or a crash, sees the old or the new content and nothing between.

    Temporary file beside it, fsync, rename, fsync of the folder (rename(2), open(2)). Raises HostError.
    """
    try:
        _write_atomic(path, data, mode)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from error


def _write_atomic(path: Path, data: bytes, mode: int) -> None:
    name = f"{path.parent}/.{path.name}.{os.urandom(8).hex()}"
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105 - text is faster, and there are many
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - as above
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder's files are on the disk (fsync(2)). Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_at(handle: int, path: Path) -> bool:
    """Say whether an open file is the one that has this name now: it may have been moved, removed or replaced."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    here = os.fstat(handle)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def write_json(path: Path, value: object) -> None:
    """Write one JSON document with ``write_atomic``. Raises HostError.

    In ASCII: a path that is not UTF-8 is text with lone surrogates here, which only JSON's escapes can hold.
    """
    write_atomic(path, f"{json.dumps(value, indent=2, allow_nan=False)}\n".encode())


def read_json(path: Path) -> dict[str, object]:
    """Read a JSON object. Raises HostError when it cannot be read or is something else."""
    try:
        # O_NONBLOCK: a pipe in the file's place is told, not waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise HostError(f"{path} is not a regular file")
            value: object = json.loads(file.read())
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise HostError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise HostError(f"{path} does not hold a JSON object")
    return cast("dict[str, object]", value)


def read_text(path: Path) -> str | None:
    """Read a small file of the kernel's trees, stripped; None when there is no such file.

    Raises HostError when it is there and cannot be read: then nothing is known, which is not the same as nothing.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error
