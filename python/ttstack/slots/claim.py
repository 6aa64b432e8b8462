"""Who says to hold a slot: the text inside its lock file."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ttstack.host.process import alive, boot_id
from ttstack.host.types import ProcessId
from ttstack.printable import printable

ClaimState = Literal["held", "dirty"]


@dataclass(frozen=True, slots=True)
class Claim:
    """For people. ``dirty``: the engine did not stop when it was told to."""

    run: str
    arm: str
    user: str
    process: ProcessId
    boot: str
    since: str  # UTC, ISO 8601 to the second
    state: ClaimState = "held"

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
        }

    def owner_lives(self) -> bool:
        """Whether the process that wrote it lives, as far as can be seen from here (not into other pid namespaces)."""
        return self.boot == boot_id() and alive(self.process)

    def __str__(self) -> str:
        dirty = ", DIRTY: its engine did not stop" if self.state == "dirty" else ""
        return f"run {self.run} (arm {self.arm}, user {self.user}, pid {self.process.pid}) since {self.since}{dirty}"


def new_claim(run: str, arm: str, process: ProcessId) -> Claim:
    """Make this process's claim, now."""
    return Claim(run, arm, user_name(), process, boot_id(), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")


def from_note(note: dict[str, object]) -> Claim | None:
    """Read a lock file's text, which any user may have written; None when it is not a claim."""
    pid, start = note.get("pid"), note.get("start")
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
    )


def user_name() -> str:
    """Name the user of this process; the number when it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
