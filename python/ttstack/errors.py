"""The one tree of errors: every room derives its own class from one of these.

Exit codes are those of the design: 0 done, 1 failed, 2 usage or a bad file, 3 refused,
4 identity refused, 5 measured but not quotable, 130 interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class Exit(IntEnum):
    """Exit codes of every verb."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    IDENTITY = 4
    NOT_QUOTABLE = 5
    INTERRUPTED = 130


class TtxError(Exception):
    """Something that the person at the keyboard must know, in one sentence, with the way out.

    ``reason`` is a stable code for records and scripts; ``hint`` says what to do next.
    """

    exit_code: ClassVar[Exit] = Exit.FAILED
    reason: str = "failed"

    def __init__(self, message: str, *, hint: str = "", reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if reason is not None:
            self.reason = reason

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(TtxError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = Exit.USAGE
    reason = "usage"


class RefusedError(TtxError):
    """Nothing was done, since it would not have been safe: busy, no space, port in use, dirty card."""

    exit_code = Exit.REFUSED
    reason = "refused"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one file: where it is, what is wrong, what was expected."""

    file: Path
    line: int  # 1-based; 0 where the fault has no line of its own
    key: str  # dotted path such as ``engine.args.max-model-len``; "" for the whole file
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else str(self.file)
        key = f" {self.key}:" if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}:{key} {self.message}{hint}"


class FileError(TtxError):
    """One or more faults in files that a person wrote; all of them are reported at once."""

    exit_code = Exit.USAGE
    reason = "bad_file"

    def __init__(self, problems: tuple[Problem, ...], *, hint: str = "") -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
