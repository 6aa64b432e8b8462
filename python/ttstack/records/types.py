"""Schema 1 as data: what the two lines of a run hold. ``schema-v1.json`` is the same thing for other readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ttstack.records.context import AbPlace, HostFacts, Tool

SCHEMA = 1

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""A value as JSON can hold it; no NaN and no infinity."""

Outcome = Literal["ok", "refused", "failed", "aborted", "interrupted"]
"""How a run ended. ``aborted`` is also what a reader calls a run that was never closed."""

CacheState = Literal["hit", "seed", "cold"]
"""hit: there was a complete one; seed: a new one that began with another one's files; cold: a new one."""

Verdict = Literal["confirmed", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that will close the run; pid and start time (ticks since boot) name it within one boot."""

    pid: int
    start: int
    boot_id: str


@dataclass(frozen=True, slots=True)
class CacheAsked:
    """The tensor cache's key and everything that went into it."""

    key: str
    inputs: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class AskedRecord:
    """What was asked, complete enough to ask for it again. Nothing here was looked at on the host."""

    arm_digest: str
    pin_digest: str
    model_digest: str
    arm: Mapping[str, Json]  # the arm after ``extends``, as JSON
    pin: Mapping[str, Json]
    model: Mapping[str, Json]
    cards: tuple[str, ...]  # ids as the arm or the command line asked for them; empty: any
    card_count: int
    cache: CacheAsked | None
    argv: tuple[str, ...]  # the engine's command; a secret is never in it
    secrets: tuple[str, ...]  # names only
    suite: str  # "" when nothing is to be measured (``ttx up``)
    settings: Mapping[str, Json] = field(default_factory=dict)  # of the suite, as they were asked for
    url: str = ""  # the server that was measured, where there is no arm (``ttx bench``)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a run; ``seconds`` is of the monotonic clock, ``start`` of the wall clock."""

    name: str
    seconds: float
    start: str = ""  # UTC, as the lines' own time; "" in lines of before it was kept


@dataclass(frozen=True, slots=True)
class CardSeen:
    """A card that the run really had, and under which node; empty: the driver does not tell."""

    id: str  # the name of its slot
    bdf: str
    node: str
    serial: str = ""
    firmware: str = ""
    driver: str = ""
    board: str = ""
    inner: int | None = None  # its position in the engine's TT_VISIBLE_DEVICES


@dataclass(frozen=True, slots=True)
class CacheWork:
    """What a run did to the tensor cache. ``seconds``: from the first look at it until it was complete, or given up.

    For a cache that was there (``hit``) that is the look alone.
    """

    key: str
    seconds: float
    bytes_written: int  # by the engine, not by seeding
    seeded_from: str = ""  # the key of the cache whose files it began with
    seeded_bytes: int = 0
    replaced: str = ""  # what was wrong with the one that was in its place


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of the run itself; None and empty mean: not seen."""

    cards: tuple[CardSeen, ...] = ()
    banners: tuple[str, ...] = ()  # the expected banners that the log of this boot showed
    served_root: str | None = None
    max_model_len: int | None = None
    engine_pid: int | None = None
    image: str | None = None  # digest of the image that ran
    cache_dir: str | None = None
    cache: CacheState | None = None
    log: str | None = None  # path of the run's log
    cache_work: CacheWork | None = None


@dataclass(frozen=True, slots=True)
class IdentityCheck:
    """One question of the identity verdict; ``ok`` is None when it could not be told."""

    name: str
    ok: bool | None
    expected: Json = None
    found: Json = None


@dataclass(frozen=True, slots=True)
class Identity:
    """The verdict that what runs is what the arm says; it follows from the checks alone."""

    checks: tuple[IdentityCheck, ...]

    @property
    def verdict(self) -> Verdict:
        """``confirmed`` only when there are checks and all of them said yes."""
        answers = [check.ok for check in self.checks]
        if False in answers:
            return "refused"
        return "confirmed" if answers and None not in answers else "unknown"


@dataclass(frozen=True, slots=True)
class MeasuredCheck:
    """One check of a suite."""

    name: str
    ok: bool
    detail: str = ""
    expected: Json = None
    found: Json = None


@dataclass(frozen=True, slots=True)
class Stat:
    """What a cell's raw values come to; ``records/statistics.py`` computes it, and ``ttx records verify`` again."""

    n: int
    median: float
    mean: float
    sd: float | None  # of the sample (n - 1); None for n = 1
    low: float  # the smallest value
    high: float  # the largest value
    percentiles: Mapping[str, float] = field(default_factory=dict)  # "p90": only where n allows it


@dataclass(frozen=True, slots=True)
class ClientSeen:
    """What the measuring client itself did meanwhile: a result taken while it was busy is not quotable."""

    seconds: float  # how long the cell took
    cpu_share: float  # of one core
    lag_p99_s: float  # how late its own loop woke up


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a suite: one shape of load, measured several times.

    ``shape`` says the load (``prompt_tokens``, ``output_tokens``, ``concurrency``, ``pattern``, ...). ``values`` are
    the raw samples, one for each valid request (or run); a name ends in its unit. ``reasons``: why it is void. A cell
    with neither requests nor reasons was not measured.
    """

    name: str
    shape: Mapping[str, Json]
    reasons: tuple[str, ...] = ()
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    stats: Mapping[str, Stat] = field(default_factory=dict)  # of each of ``values``
    server: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # the server's own times, beside ours
    requests: int = 0
    voids: Mapping[str, int] = field(default_factory=dict)  # code of the reason -> requests
    client: ClientSeen | None = None
    notes: tuple[str, ...] = ()  # what a reader must know; nothing against it. Of a cell that was not measured: why

    @property
    def valid(self) -> bool:
        """Whether its values may be used."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Measured:
    """What a suite found. ``values`` holds every raw sample; a name ends in its unit (``ttft_s``)."""

    suite: str
    checks: tuple[MeasuredCheck, ...] = ()
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    requests: int = 0
    void: int = 0  # requests that could not be used; never averaged in
    cells: tuple[Cell, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)  # the suite's, its seed among them
    outputs: Mapping[str, str] = field(default_factory=dict)  # name of a fixed prompt -> digest or text of the answer

    @property
    def ok(self) -> bool:
        """Whether there was something to check and all of it held."""
        return bool(self.checks) and all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True)
class Opened:
    """The line that opens a run, written before anything is touched."""

    id: str
    run: str
    time: str  # UTC, ISO 8601 with milliseconds and Z
    verb: str
    arm: str
    simulated: bool
    owner: Owner
    asked: AskedRecord
    host: HostFacts
    tool: Tool
    ab: AbPlace | None = None  # None: it is no part of an A/B


@dataclass(frozen=True, slots=True)
class Closed:
    """The line that closes a run. ``quotable`` is ``quotable_reasons == ()``; see ``ttstack.records.quotable``."""

    id: str
    run: str
    time: str
    outcome: Outcome
    reason: str  # a stable code, "" when the outcome is ok
    text: str  # the sentence for people
    exit_code: int
    phases: tuple[Phase, ...]
    observed: Observed | None
    identity: Identity | None
    measured: Measured | None
    quotable: bool
    quotable_reasons: tuple[str, ...]  # why not; empty when quotable
