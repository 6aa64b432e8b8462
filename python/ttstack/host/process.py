"""Processes that cannot be mistaken for later ones: every question and every signal takes pid and start time."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ttstack.host.errors import HostError
from ttstack.host.types import ProcessId
from ttstack.printable import printable

PROC = Path("/proc")
_COMMAND_LENGTH = 120  # characters


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields of /proc/PID/stat that matter here (proc_pid_stat(5))."""

    id: ProcessId
    state: str  # one letter: R, S, D, Z, ...
    parent: int
    session: int


def parse_stat(text: str) -> Stat:
    """Read /proc/PID/stat. The name (field 2) may hold spaces and parentheses, so split after the last one."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return Stat(
        id=ProcessId(int(head.split(" ", 1)[0]), int(fields[19])),
        state=fields[0],
        parent=int(fields[1]),
        session=int(fields[3]),
    )


def stat(pid: int, proc: Path = PROC) -> Stat | None:
    """Look at a process; None when there is none with that number."""
    try:
        return parse_stat((proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    except (OSError, ValueError, IndexError) as error:
        raise HostError(f"cannot read {proc / str(pid) / 'stat'}: {error}") from error


def identify(pid: int, proc: Path = PROC) -> ProcessId | None:
    """Name a process for good; None when it is not there."""
    seen = stat(pid, proc)
    return seen.id if seen else None


def myself() -> ProcessId:
    """Name this process. Raises HostError without /proc."""
    seen = identify(os.getpid())
    if seen is None:
        raise HostError("/proc does not show this process", hint="ttx needs /proc of its own pid namespace")
    return seen


def alive(process: ProcessId, proc: Path = PROC) -> bool:
    """Say whether this very process still runs. A zombie does not, unless other threads of it do."""
    seen = stat(process.pid, proc)
    if seen is None or seen.id != process:
        return False
    if seen.state not in {"Z", "X"}:
        return True
    with suppress(OSError):  # gone in between: then it is dead
        return len(os.listdir(proc / str(process.pid) / "task")) > 1  # noqa: PTH208
    return False


def boot_id(proc: Path = PROC) -> str:
    """Name this boot of the kernel: pid and start time mean nothing across boots (random(4))."""
    path = proc / "sys" / "kernel" / "random" / "boot_id"
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error


def environ(pid: int, proc: Path = PROC) -> dict[str, str] | None:
    """Read the environment that a process was started with; None when that cannot be learned."""
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def command(pid: int, proc: Path = PROC) -> str:
    """Read a process's command line for people, cut to 120 characters; "" when that cannot be learned."""
    try:
        data = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    text = printable(" ".join(os.fsdecode(word) for word in data.split(b"\0") if word))
    return text if len(text) <= _COMMAND_LENGTH else f"{text[: _COMMAND_LENGTH - 3]}..."


def pids(proc: Path = PROC) -> list[int]:
    """List the processes that are there now. Raises HostError."""
    try:
        return sorted(int(name) for name in os.listdir(proc) if name.isdigit())  # noqa: PTH208
    except OSError as error:
        raise HostError(f"cannot list {proc}: {error.strerror}") from error


def family(leader: ProcessId, proc: Path = PROC) -> tuple[ProcessId, ...]:
    """Name the live processes that a session leader started: its descendants and all of its session.

    A child that outlives its parent is given to another parent but keeps its session, and the kernel hands out no
    pid that is still a session's number, so the session is looked at even when the leader is gone. The leader comes
    first when it lives. Zombies are left out.
    """
    seen = [found for found in (stat(pid, proc) for pid in pids(proc)) if found is not None]
    same = any(entry.id == leader for entry in seen)
    if not same and any(entry.id.pid == leader.pid for entry in seen):
        return ()  # the number is another process's by now, so no session of ours is left
    wanted = {entry.id.pid for entry in seen if entry.session == leader.pid}
    if same:
        wanted.add(leader.pid)
    grown = True
    while grown:
        more = {entry.id.pid for entry in seen if entry.parent in wanted} - wanted
        wanted |= more
        grown = bool(more)
    found = [entry.id for entry in seen if entry.id.pid in wanted and alive(entry.id, proc)]
    return tuple(sorted(found, key=lambda process: (process != leader, process.pid)))


def send(process: ProcessId, number: signal.Signals) -> bool:
    """Signal this very process and no later one with its pid; False when it is gone.

    The pid is pinned by a pidfd before its start time is compared (pidfd_open(2)). Raises HostError when not allowed.
    """
    try:
        pinned = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError as error:
        raise HostError(f"cannot take hold of process {process.pid}: {error.strerror}") from error
    try:
        if identify(process.pid) != process:
            return False
        signal.pidfd_send_signal(pinned, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise HostError(
            f"not allowed to signal process {process.pid} ({command(process.pid)})",
            hint="it belongs to another user; ask them, or run this as root",
        ) from error
    finally:
        os.close(pinned)
    return True
