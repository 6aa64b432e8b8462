"""The run room's errors."""

from __future__ import annotations

from ttstack.errors import Exit, RefusedError, TtxError


class RunError(TtxError):
    """A run failed: its engine, its supervisor or its stop. ``reason`` says which."""

    reason = "run"


class RunRefusedError(RefusedError):
    """A run was not started, since it would not have been safe or could not have worked."""


NOTHING_MADE = frozenset({"runtime_missing", "runtime_down", "runtime_denied", "secret_missing"})
"""Reasons of a failed start after which no container can be there."""


REFUSED_STARTS = frozenset(
    {
        *("runtime_missing", "runtime_down", "runtime_denied", "runtime_slow", "runtime_unusable"),
        *("image_missing", "name_taken", "node_missing", "port_busy", "mount_missing"),
    }
)
"""Reasons of a failed start that is a refusal: the engine did not begin."""


class IdentityRefusedError(TtxError):
    """What runs is not, or cannot be shown to be, what the arm says. Nothing was measured."""

    exit_code = Exit.IDENTITY
    reason = "identity"


class InterruptedRunError(TtxError):
    """The person, or the system, asked ttx to stop."""

    exit_code = Exit.INTERRUPTED
    reason = "interrupted"
