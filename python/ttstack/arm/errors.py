"""What can go wrong with arms, pins and models."""

from __future__ import annotations

from ttstack.errors import FileError, UsageError


class ArmError(UsageError):
    """There is no such arm, or no folder of arms."""

    reason = "no_arm"


class ArmFileError(FileError):
    """Faults in an arm's file, in a file that it extends, in its pin's or in models.toml."""

    reason = "bad_arm"
