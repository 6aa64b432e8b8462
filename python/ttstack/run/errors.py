"""The run room's errors."""

from __future__ import annotations

from ttstack.errors import Exit, RefusedError, TtxError


class RunError(TtxError):
    """A run failed: its engine, its supervisor or its stop. ``reason`` says which."""

    reason = "run"


class RunRefusedError(RefusedError):
    """A run was not started, since it would not have been safe or could not have worked."""


class IdentityRefusedError(TtxError):
    """What runs is not, or cannot be shown to be, what the arm says. Nothing was measured."""

    exit_code = Exit.IDENTITY
    reason = "identity"


class InterruptedRunError(TtxError):
    """The person, or the system, asked ttx to stop."""

    exit_code = Exit.INTERRUPTED
    reason = "interrupted"
