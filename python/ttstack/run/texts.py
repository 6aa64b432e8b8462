"""What the engine's log tells: the steps of a boot, and the lines after which waiting is useless."""

from __future__ import annotations

import re
from dataclasses import dataclass

STEPS: dict[str, tuple[str, ...]] = {
    "plugin": ("Platform plugin tt is activated",),
    "args": ("non-default args:", "vLLM server version", "vLLM API server version"),
    "engine": ("Resolved architecture:", "Initializing a V1 LLM engine"),
    "device": ("Opening user mode device driver",),
    "mesh": ("Attempting to open mesh device",),
    "model": ("TTModelRunner:", "Checkpoint directory:"),
    "cache": ("Loading checkpoint shards", "Generating cache for"),
    "kv": ("GPU KV cache size",),
    "warmup": ("Warming up prefill", "Done Capturing"),
    "ready": ("Application startup complete.",),
}
"""Step of the boot -> texts that show it was reached, in order (vLLM 0.25, vllm-tt-plugin, tt-metal)."""

BUILDING = "Generating cache for"
"""In a line of a boot that writes the tensor cache (tt-metal, models/tt_transformers)."""

_ORDER = tuple(STEPS)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a boot cannot end well any more."""

    reason: str
    text: str


_FAILURES: tuple[tuple[str, Failure], ...] = (
    # UMD waits for these without a limit (tt-umd#2745); 22 minutes were seen (tt-studio#1329).
    (
        r"Waiting for lock 'CHIP_IN_USE_|Waiting for KMD lock",
        Failure("lock_wait", "the engine waits, without a limit, for a chip that another process uses"),
    ),
    (r"No space left on device", Failure("no_space", "the engine found no space left on a device")),
    (
        r"Timed out while waiting for active ethernet core",  # tt-inference-server#4923
        Failure("ethernet", "an ethernet core of the card does not answer; the card may need a reset"),
    ),
    (
        r"Expected sysmem to be mapped at NOC address|Sysmem mapped at unexpected NOC address",
        Failure("sysmem", "the card's view of host memory is left over from another process; it may need a reset"),
    ),
    (r"EngineCore failed to start\.", Failure("engine_failed", "the engine failed to start")),
    (r"TT_FATAL @ |TT_THROW @ ", Failure("engine_failed", "tt-metal gave up while the engine started")),
)
_WHILE_BOOTING = tuple((re.compile(pattern), failure) for pattern, failure in _FAILURES)
# Once it serves, a log may quote what users send, so only tt-metal's own lines are believed (spdlog's format), and only
# those that mean that a card is lost: a throw may belong to one request.
_SERVING = tuple(
    (re.compile(rf"\d{{4}}-\d\d-\d\d [\d:.]+ \| \w+ +\| +\w+ \| .*?(?:{pattern})"), failure)
    for pattern, failure in _FAILURES
    if failure.reason in {"lock_wait", "ethernet", "no_space"}
)


def failure_in(line: str, *, serving: bool) -> Failure | None:
    """Say what a line of the log means when it means the end."""
    if serving:
        return next((failure for pattern, failure in _SERVING if pattern.match(line)), None)
    return next((failure for pattern, failure in _WHILE_BOOTING if pattern.search(line)), None)


def later_step(step: str, line: str) -> str:
    """Return the step that a line shows, or ``step`` itself when that is no earlier; "" comes before all."""
    at = _ORDER.index(step) + 1 if step else 0
    for name in reversed(_ORDER[at:]):
        if any(text in line for text in STEPS[name]):
            return name
    return step
