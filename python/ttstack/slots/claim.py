"""Who says to hold a slot: the text inside its lock file."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ttstack.host.process import alive, boot_id
from ttstack.host.types import ProcessId
from ttstack.printable import printable

ClaimState = Literal["held", "dirty"]
ClaimKind = Literal["engine", "program"]
NOBODY_KNOWN = "somebody who left no name"
_PID_NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class Claim:
    """For people. ``dirty``: the engine did not stop when it was told to. ``program``: anything but an arm's engine."""

    run: str
    arm: str  # of a program: its command line
    user: str
    process: ProcessId
    boot: str
    since: str  # UTC, ISO 8601 to the second
    state: ClaimState = "held"
    kind: ClaimKind = "engine"
    pid_namespace: int = 0  # inode of the namespace in which ``process`` means something; 0: not told
    cache: str = ""  # key of the tensor cache that it uses; "" when it uses none, or does not tell

    def to_note(self) -> dict[str, object]:
        """Turn it into what a lock file holds."""
        return {
            "run": self.run,
            "arm": self.arm,
            "user": self.user,
            "pid": self.process.pid,
            "start": self.process.start,
            "boot_id": self.boot,
            "since": self.since,
            "state": self.state,
            "kind": self.kind,
            "pid_namespace": self.pid_namespace,
            "cache": self.cache,
        }

    def owner_lives(self) -> bool:
        """Whether the process that wrote it lives. The pid of another pid namespace is nobody's here."""
        return self.boot == boot_id() and self.pid_namespace == _pid_namespace() and alive(self.process)

    @property
    def gone(self) -> str:
        """What to say when the owner is not seen to live."""
        if self.boot == boot_id() and self.pid_namespace != _pid_namespace():
            return "; it runs in another pid namespace, which cannot be seen from here"
        if self.kind == "program":
            return "; its ttx is gone, what it started is not"
        return f"; its supervisor is gone, the engine is not: `ttx adopt {self.run}` or `ttx down {self.run}`"

    def __str__(self) -> str:
        dirty = ", DIRTY: its engine did not stop" if self.state == "dirty" else ""
        what = "arm" if self.kind == "engine" else "program"
        return f"run {self.run} ({what} {self.arm}, user {self.user}, pid {self.process.pid}) since {self.since}{dirty}"


def new_claim(run: str, arm: str, process: ProcessId, kind: ClaimKind = "engine", cache: str = "") -> Claim:
    """Make this process's claim, now. ``cache`` is the key of the tensor cache that it uses."""
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Claim(
        run, arm, user_name(), process, boot_id(), since, kind=kind, pid_namespace=_pid_namespace(), cache=cache
    )


def _pid_namespace() -> int:
    return _PID_NAMESPACE.stat().st_ino


def from_note(note: dict[str, object]) -> Claim | None:
    """Read a lock file's text, which any user may have written; None when it is not a claim."""
    pid, start, namespace = note.get("pid"), note.get("start"), note.get("pid_namespace")
    if not isinstance(pid, int) or not isinstance(start, int):
        return None
    return Claim(
        run=printable(str(note.get("run", ""))),
        arm=printable(str(note.get("arm", ""))),
        user=printable(str(note.get("user", ""))),
        process=ProcessId(pid, start),
        boot=str(note.get("boot_id", "")),
        since=printable(str(note.get("since", ""))),
        state="dirty" if note.get("state") == "dirty" else "held",
        kind="program" if note.get("kind") == "program" else "engine",
        pid_namespace=namespace if isinstance(namespace, int) else 0,
        cache=printable(str(note.get("cache", ""))),
    )


def user_name() -> str:
    """Name the user of this process; the number when it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
