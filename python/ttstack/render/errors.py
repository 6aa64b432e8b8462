"""The room's error."""

from __future__ import annotations

from ttstack.errors import Exit, TtxError


class RenderError(TtxError):
    """An arm, a launch or a command line has no faithful form on the other side."""

    exit_code = Exit.USAGE
    reason = "render"
