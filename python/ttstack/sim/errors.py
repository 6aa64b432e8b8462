"""What goes wrong in the simulated host."""

from __future__ import annotations

from ttstack.errors import TtxError


class SimError(TtxError):
    """The simulated host or its engine cannot do what was asked."""

    reason = "sim"


class BootError(SimError):
    """The engine cannot start. ``detail`` holds the lines that tt-metal or vLLM would print, in order."""

    reason = "sim_boot"

    def __init__(self, *detail: str) -> None:
        super().__init__(detail[0])
        self.detail = detail


class ApiError(SimError):
    """A request is refused with an HTTP status; ``kind`` and ``param`` go into vLLM's error body."""

    reason = "sim_api"

    def __init__(self, status: int, message: str, *, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param


class EngineDeadError(SimError):
    """The engine died while a request was waiting or running."""

    reason = "sim_dead"


class GoneError(SimError):
    """The client of a request hung up; nobody is left to be told."""

    reason = "sim_gone"
