"""One file of a cache put into another cache: as a clone, as a second name, or as a copy.

Everything is done below open folders, so that no link is followed, and what arrives is compared with what the manifest
promised, so that a file which changed meanwhile is never taken.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from ttstack.cache.errors import CacheError
from ttstack.cache.seed_record import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ttstack.cache.types import FileEntry

FICLONE = 0x40049409
"""_IOW(0x94, 9, int), ioctl_ficlone(2); Python has no name for it."""

_OFTEN = 256  # links between two reports of bytes
CHUNK = 64 << 20  # bytes at a time, so that the progress of a large file is seen
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MAKE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EPERM}

_NO_LINK = {errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS}
"""EXDEV also between two mounts of one file system, though st_dev is equal (link(2))."""

_NOT_THIS_FILE = {errno.EPERM, errno.EMLINK}
"""One of others (fs.protected_hardlinks, proc_sys_fs(5)), and one that has as many names as it may have."""


class Transfer:
    """Puts files from one cache into another, by the first method that works; one that does not is not tried again.

    Unless it is for the file's own sake that it is refused: then that file is put by the next method. ``advance`` is
    called with bytes as they are done. ``by_rename``: the engine never writes into a file that is there, so that a
    second name is safe.
    """

    def __init__(self, *, by_rename: bool, advance: Callable[[int], None]) -> None:
        self._reflink, self._hardlink = True, by_rename
        self._advance = advance

    @property
    def links(self) -> bool:
        """Whether files are put by giving them a second name."""
        return self._hardlink and not self._reflink

    def put_all(self, source: int, target: int, files: Sequence[tuple[str, FileEntry]], done: list[Row]) -> None:
        """Put files, by name, of one open folder into another; each that is put is added to ``done``.

        Raises CacheError when one is not what the manifest tells of, OSError when there is no room or no right.
        """
        at = 0
        while at < len(files):
            if self.links:
                at += self._link_all(source, target, files[at : at + _OFTEN], done)
            if at < len(files):
                done.append(self._put(source, target, *files[at]))
                at += 1

    def _put(self, source: int, target: int, name: str, entry: FileEntry) -> Row:
        if self._reflink:
            inode = self._fill(source, target, name, entry, _clone)
            if inode is not None:
                self._advance(entry.size)
                return Row(entry.path, "reflink", inode, entry.size, entry.mtime_ns)
            self._reflink = False
        linked: list[Row] = []
        if self._hardlink and self._link_all(source, target, [(name, entry)], linked):
            return linked[0]
        inode = self._fill(source, target, name, entry, self._copy)
        if inode is None:
            raise CacheError(f"{entry.path} can be put there by no method")
        return Row(entry.path, "copy", inode, entry.size, entry.mtime_ns)

    def _link_all(self, source: int, target: int, files: Sequence[tuple[str, FileEntry]], done: list[Row]) -> int:
        """Link files until one cannot be; return how many were. One loop: caches have tens of thousands of files."""
        link, stat_of, regular = os.link, os.stat, stat.S_ISREG
        size = 0
        for at, (name, entry) in enumerate(files):
            try:
                link(name, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            except OSError as error:
                self._hardlink = error.errno in _NOT_THIS_FILE
                if not self._hardlink and error.errno not in _NO_LINK:
                    raise
                self._advance(size)
                return at
            seen = stat_of(name, dir_fd=target, follow_symlinks=False)
            if seen.st_size != entry.size or seen.st_mtime_ns != entry.mtime_ns or not regular(seen.st_mode):
                os.unlink(name, dir_fd=target)
                raise changed(entry)
            done.append(Row(entry.path, "hardlink", seen.st_ino, entry.size, entry.mtime_ns))
            size += entry.size
        self._advance(size)
        return len(files)

    def _fill(
        self, source: int, target: int, name: str, entry: FileEntry, pour: Callable[[int, int, FileEntry], bool]
    ) -> int | None:
        """Make a new file under another name, and rename it when it is whole."""
        origin = os.open(name, _READ, dir_fd=source)
        beside = f".ttx-seed.{os.getpid()}"
        try:
            seen = os.fstat(origin)
            _must_be(seen, entry)
            made = os.open(beside, _MAKE, 0o600, dir_fd=target)
            try:
                if pour(origin, made, entry):
                    give(made, seen)
                    _must_be(os.fstat(origin), entry)  # still: it was not written to meanwhile
                    os.rename(beside, name, src_dir_fd=target, dst_dir_fd=target)
                    return os.fstat(made).st_ino
            finally:
                os.close(made)
        except BaseException:
            _unlink(beside, target)
            raise
        finally:
            os.close(origin)
        _unlink(beside, target)
        return None

    def _copy(self, origin: int, made: int, entry: FileEntry) -> bool:
        left = entry.size
        while left:
            done = _some(origin, made, min(left, CHUNK))
            if not done:
                raise changed(entry)  # it is shorter than it was
            left -= done
            self._advance(done)
        return True


def same(seen: os.stat_result, entry: FileEntry) -> bool:
    """Whether this is the regular file that a manifest tells of."""
    return stat.S_ISREG(seen.st_mode) and seen.st_size == entry.size and seen.st_mtime_ns == entry.mtime_ns


def _must_be(seen: os.stat_result, entry: FileEntry) -> None:
    if not same(seen, entry):
        raise changed(entry)


def changed(entry: FileEntry) -> CacheError:
    """Say that a file is another than its manifest tells."""
    return CacheError(
        f"{entry.path} is not as it was when its cache was completed",
        hint="see what became of it: ttx cache verify",
        reason="seed_changed",
    )


def give(made: int, like: os.stat_result) -> None:
    """Give an open file or folder the owner, mode and times of another; the owner as far as this user may."""
    with suppress(PermissionError):
        os.fchown(made, like.st_uid, like.st_gid)
    os.fchmod(made, stat.S_IMODE(like.st_mode))
    os.utime(made, ns=(like.st_atime_ns, like.st_mtime_ns))


def _clone(origin: int, made: int, _entry: FileEntry) -> bool:
    try:
        fcntl.ioctl(made, FICLONE, origin)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True


def _some(origin: int, made: int, size: int) -> int:
    """Copy the next bytes inside the kernel; return how many. Both descriptors move on."""
    try:
        return os.copy_file_range(origin, made, size)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return os.sendfile(made, origin, None, size)  # from one file system to another, before Linux 5.3


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
