"""The card nodes: opened, locked as UMD locks a chip in use, and kept open until the end."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.sim.errors import BootError

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.05
_LOCKS = Path("/proc/locks")


def present(folder: Path) -> list[Path]:
    """Nodes in a folder such as /dev/tenstorrent, by number; it also holds the directory by-id."""
    try:
        names = [entry.name for entry in folder.iterdir() if entry.name.isascii() and entry.name.isdigit()]
    except OSError:
        return []
    return [folder / name for name in sorted(names, key=int)]


def _holder(fd: int) -> int:
    """Pid of the process that has the lock, 0 when it cannot be told. See proc_locks(5)."""
    inode = os.fstat(fd).st_ino
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):  # noqa: PLR2004 - its columns
            return int(fields[4])
    return 0


def waiting(chip: int, pid: int) -> str:
    """UMD's line while another process has the chip; it waits without a limit."""
    return f"Waiting for lock 'CHIP_IN_USE_{chip}_PCIe' which is currently held by thread TID: {pid}, PID: {pid}"


class Devices:
    """The open nodes of one engine."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, nodes: list[Path], say: Callable[[str], None]) -> None:
        """Open and lock every node, waiting for a lock as long as it takes. Raises BootError."""
        if not nodes:
            raise BootError(
                "TT_FATAL @ tt_cluster.cpp:129: num_chips > 0",
                "info:",
                "No chips detected in the cluster",
            )
        for chip, node in enumerate(nodes):
            try:
                fd = os.open(node, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise BootError(f"TT_FATAL @ pci_device.cpp: cannot open {node}: {error.strerror}") from error
            self._open.append(fd)
            told = False
            while not _lock(fd):
                if not told:
                    say(waiting(chip, _holder(fd)))
                    told = True
                await asyncio.sleep(_POLL_S)

    def close(self) -> None:
        """Close every node, and with it the locks."""
        while self._open:
            os.close(self._open.pop())


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
