"""Who listens on a TCP port."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.process import PROC, pids

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LISTEN = "0A"  # TCP_LISTEN of the kernel's include/net/tcp_states.h


def listening_inodes(port: int, proc: Path = PROC) -> frozenset[str]:
    """Inodes of the sockets that listen on a port, on any address, IPv4 and IPv6 (proc_net_tcp: proc(5)).

    Raises HostError when neither table can be read.
    """
    wanted = f":{port:04X}"
    found: set[str] = set()
    tables = 0
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue  # no IPv6 here, or no /proc/net at all: counted below
        tables += 1
        rows = (line.split() for line in lines)
        found |= {row[9] for row in rows if len(row) > 9 and row[1].endswith(wanted) and row[3] == _LISTEN}  # noqa: PLR2004
    if tables == 0:
        raise HostError(f"cannot read {proc / 'net/tcp'}", hint="ttx needs /proc of its own network namespace")
    return frozenset(found)


def owners(inodes: frozenset[str], among: Iterable[int] | None = None, proc: Path = PROC) -> tuple[int, ...]:
    """Pids that have one of these sockets open, among those given (default: all whose descriptors may be read)."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return tuple(pid for pid in (pids(proc) if among is None else among) if wanted & _links(pid, proc))


def _links(pid: int, proc: Path) -> set[str]:
    folder = proc / str(pid) / "fd"
    found: set[str] = set()
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return found  # gone, or another user's: it cannot be shown to own the socket
    for name in names:
        try:
            found.add(str((folder / name).readlink()))
        except OSError:
            continue  # closed meanwhile
    return found


def busy(host: str, port: int) -> bool:
    """Say whether binding would fail since somebody has the port. Raises HostError for an address we don't have.

    SO_REUSEADDR as servers set it, so that connections of an earlier server that linger (TIME_WAIT) don't count.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            # Two sockets with SO_REUSEADDR may both bind as long as neither listens.
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise HostError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return False
