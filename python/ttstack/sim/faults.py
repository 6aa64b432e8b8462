"""Faults on request: ``--sim-fault NAME[:ARG]``, as often as wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.errors import UsageError
from ttstack.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STEPS = (
    "plugin",
    "args",
    "arch",
    "engine",
    "binding",
    "device",
    "mesh",
    "runner",
    "model",
    "cache",
    "kv",
    "warmup",
    "ready",
)
"""The steps of a boot, in order."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: ``argument`` is empty, or what stands after the colon (STEP, N or TEXT)."""

    name: str
    argument: str
    effect: str


FAULTS = (
    Fault("die", "STEP", 'exit 1 with "EngineCore failed to start." when the boot reaches STEP'),
    Fault("die-serving", "N", "the engine dies once N completions were answered; the server exits 1 soon after"),
    Fault("hang", "STEP", "the boot stops at STEP for ever"),
    Fault("hang-lock", "", "the boot waits for ever for the lock of chip 0, as UMD does when another process has it"),
    Fault("ignore-sigterm", "", "SIGTERM does nothing (SIGINT still stops the engine)"),
    Fault("silent-port", "", "the boot ends well but nothing ever listens"),
    Fault("missing-banner", "TEXT", "lines that contain TEXT are not printed"),
    Fault("wrong-root", "", "/v1/models names another checkpoint"),
    Fault("wrong-max-len", "", "/v1/models names half the context length"),
    Fault("corrupt-cache", "", "one of the tensor files that this boot writes is corrupt"),
    Fault("wrong-cache-dir", "", "a folder beside TT_CACHE_PATH is named and used"),
    Fault("stream-error", "", "an error event half way through a 200 stream, then [DONE]"),
    Fault("stream-cut", "", "the connection is dropped half way through a stream"),
    Fault("stream-differs", "", "a streamed answer is not the answer that comes without streaming"),
    Fault("not-deterministic", "", "answers at temperature 0 differ from one another"),
    Fault("no-stop", "", "stop strings are ignored"),
    Fault("bad-unicode", "", "characters of more than one token come out as U+FFFD"),
    Fault("no-limit", "", "requests longer than the context are accepted"),
    Fault("no-usage", "", "token counts are left out of answers and streams"),
)
"""Every fault there is; docs/reference/sim.md repeats this table."""

_BY_NAME = {fault.name: fault for fault in FAULTS}


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that were asked for: name to its arguments, in the order given."""

    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.chosen

    def args(self, name: str) -> tuple[str, ...]:
        """Give the arguments with which a fault was asked for; empty when it was not."""
        return self.chosen.get(name, ())


def _check(fault: Fault, argument: str | None) -> str:
    text = f"--sim-fault {fault.name}"
    if not fault.argument:
        if argument is not None:
            raise UsageError(f"{text} takes no argument, got {argument!r}")
        return ""
    if not argument:
        raise UsageError(f"{text} needs its {fault.argument}: {fault.name}:{fault.argument}")
    if fault.argument == "STEP" and argument not in STEPS:
        raise UsageError(f"{text}: {argument!r} is not a step of the boot", hint=f"steps: {', '.join(STEPS)}")
    if fault.argument == "N" and not (argument.isascii() and argument.isdigit()):
        raise UsageError(f"{text}: {argument!r} is not a whole number")
    return argument


def parse(texts: Iterable[str]) -> Faults:
    """Read the values of ``--sim-fault``. Raises UsageError for an unknown fault or a bad argument."""
    chosen: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, colon, argument = text.partition(":")
        fault = _BY_NAME.get(name)
        if fault is None:
            hint = did_you_mean(name, _BY_NAME) or f"faults: {', '.join(_BY_NAME)}"
            raise UsageError(f"unknown fault {name!r}", hint=hint)
        chosen[name] = (*chosen.get(name, ()), _check(fault, argument if colon else None))
    return Faults(chosen)
