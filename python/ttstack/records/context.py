"""Schema 1 as data: what a run has around it, that is the machine, the program, and the A/B that it is part of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HostState:
    """What the machine was about when the run was opened; None and empty mean: not told."""

    load: tuple[float, ...] = ()  # average over 1, 5 and 15 minutes
    memory_available_bytes: int | None = None
    cpu_governor: str = ""  # several, when the CPUs differ, with commas between
    cache_free_bytes: int | None = None  # of the file system that the tensor caches are on
    clock_synchronised: bool | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The machine, as far as a reader of numbers must know it."""

    hostname: str
    boot_id: str
    kernel: str
    cpu_count: int
    cpu_model: str = ""
    memory_bytes: int | None = None
    python: str = ""
    state: HostState | None = None  # None: in lines of before it was looked at


@dataclass(frozen=True, slots=True)
class Tool:
    """The program that wrote the line, and which code it was."""

    name: str
    version: str
    source: Literal["git", "store", "wheel", "files", ""] = ""  # where its code lies: a work tree, the Nix store, ...
    place: str = ""  # the work tree, the store path or the folder of the package
    commit: str = ""  # of the work tree
    dirty: str = ""  # sha256, hex, over what the work tree's package has beyond that commit; "" when it has nothing


@dataclass(frozen=True, slots=True)
class AbPlace:
    """Which place a run has in an A/B, and the plan of all of it, so that what it comes to follows from its runs."""

    id: str  # of the A/B
    pairs: int  # how many were planned, before anything was measured
    metric: str  # the one that has the verdict
    other_outputs: bool  # whether B may answer otherwise than A
    pair: int  # counted from 0
    side: Literal["A", "B"]
    order: Literal["ab", "ba", ""]  # of this pair; "" when both ran at once
    position: int  # in time, among the planned runs, counted from 0; two that ran at once share one
    attempt: int  # of this pair, counted from 0; one that was interrupted is measured again
