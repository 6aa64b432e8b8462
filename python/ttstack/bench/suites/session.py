"""One suite's work with one server: its requests are made, counted and put into cells here."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.bench.client.load import run_load
from ttstack.bench.client.prompts import fresh_prompt
from ttstack.bench.client.types import Ask, Closed, Limits
from ttstack.bench.errors import BenchError
from ttstack.bench.suites.cells import cell_of, unmeasured_cell, void_cell
from ttstack.bench.suites.server_times import prefill_counter, prefill_mean
from ttstack.host.types import Roots
from ttstack.records.build import jsonable
from ttstack.records.types import Cell, Measured, MeasuredCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ttstack.bench.client.endpoint import Endpoint
    from ttstack.bench.client.types import LoadResult, Open, Result
    from ttstack.bench.suites.cells import Values
    from ttstack.host.types import Card
    from ttstack.records.types import Json

WARM_UP_TOKENS = 8  # of each answer of a warm-up, at most
_WARM_UP = 1_000_000  # added to the number of a prompt: no measured one has such a number


@dataclass(frozen=True, slots=True)
class Target:
    """The server that is measured. None: it is not known."""

    endpoint: Endpoint
    model: str
    max_model_len: int | None = None  # tokens
    max_num_seqs: int | None = None  # requests that it computes at once
    simulated: bool = False  # known to be the simulated engine
    extra: Mapping[str, Json] = field(default_factory=dict)  # more fields of every request
    cards: tuple[Card, ...] = ()  # that it runs on, where they can be looked at
    roots: Roots = field(default_factory=Roots)

    def lacks_room(self, prompt_tokens: int, output_tokens: int) -> str:
        """Say that a request does not fit; "" when it does, or when the server does not tell."""
        if self.max_model_len is None or prompt_tokens + output_tokens <= self.max_model_len:
            return ""
        return f"{prompt_tokens} + {output_tokens} tokens do not fit into max_model_len {self.max_model_len}"


def _hear_nothing(_what: object) -> None:
    pass


def _go_on() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears of each check and each cell, and who says by an exception that it is time to end."""

    check: Callable[[MeasuredCheck], None] = _hear_nothing
    cell: Callable[[Cell], None] = _hear_nothing
    interrupted: Callable[[], None] = _go_on


@dataclass(slots=True)
class Session:
    """What was measured so far. ``seed`` makes the prompts: "" takes a new one."""

    target: Target
    listener: Listener
    timeout_s: float
    seed: str = ""
    checks: list[MeasuredCheck] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    void: int = 0
    gone: str = ""  # where the server was first found to be gone

    def __post_init__(self) -> None:
        self.seed = self.seed or secrets.token_hex(8)

    def ask(self, cell: str, number: int, prompt_tokens: int, output_tokens: int) -> Ask:
        """Make a request of exact length whose prompt no other one shares a beginning with."""
        prompt = fresh_prompt(prompt_tokens, f"{self.seed}/{cell}", number)
        return Ask(self.target.model, prompt, output_tokens, extra=self.target.extra, label=cell)

    def asks(self, cell: str, count: int, prompt_tokens: int, output_tokens: int) -> tuple[Ask, ...]:
        """Make the requests that are measured."""
        return tuple(self.ask(cell, number, prompt_tokens, output_tokens) for number in range(count))

    def warm_up(self, cell: str, count: int, prompt_tokens: int, output_tokens: int) -> tuple[Ask, ...]:
        """Make requests of the same length with other prompts, and short answers."""
        tokens = min(WARM_UP_TOKENS, output_tokens)
        return tuple(self.ask(cell, _WARM_UP + number, prompt_tokens, tokens) for number in range(count))

    def load(
        self,
        asks: Iterable[Ask],
        pattern: Closed | Open,
        *,
        duration_s: float | None = None,
        on_result: Callable[[Result], None] | None = None,
    ) -> LoadResult:
        """Send requests and count them. Raises BenchError when the server cannot be reached at all."""
        self.listener.interrupted()
        limits = Limits(timeout_s=self.timeout_s, duration_s=duration_s)
        load = run_load(self.target.endpoint, asks, pattern, limits, on_result)
        self.requests += load.requests
        self.void += sum(load.voids.values())
        return load

    def cell(  # noqa: PLR0913 - a cell's parts, by name
        self,
        name: str,
        shape: Mapping[str, Json],
        *,
        warm_up: Sequence[Ask],
        asks: Sequence[Ask],
        pattern: Closed,
        choose: Callable[[LoadResult], tuple[Sequence[Result], Values, Sequence[str]]] | None = None,
    ) -> Cell:
        """Warm up, measure, and keep what came of it.

        ``choose`` says which requests are measured (else all that are valid), with more values and more reasons why
        the cell is void. Warm-up requests are in no value; when one of them is void, so is the cell.
        """
        if self.gone:
            return self.keep(void_cell(name, shape, f"not tried, since the server was gone at {self.gone}"))
        try:
            warmed = self.warmed(warm_up, pattern)
            before = prefill_counter(self.target.endpoint)
            load = self.load(asks, pattern)
            after = prefill_counter(self.target.endpoint)
        except BenchError as error:
            self.gone = name
            self.requests += len(asks)
            self.void += len(asks)
            return self.keep(void_cell(name, shape, error.message, len(asks), error.reason))
        measured, values, reasons = (load.valid, {}, ()) if choose is None else choose(load)
        server = prefill_mean(before, after, load.requests)
        return self.keep(
            cell_of(name, shape, load, measured, values=values, server=server, reasons=[*warmed, *reasons])
        )

    def warmed(self, asks: Sequence[Ask], pattern: Closed) -> list[str]:
        """Send the warm-up; say what is wrong with it. Raises BenchError."""
        load = self.load(asks, pattern) if asks else None
        if load is None or not load.voids:
            return []
        codes = ", ".join(sorted(reason.value for reason in load.voids))
        return [f"{sum(load.voids.values())} of {load.requests} void in the warm-up: {codes}"]

    def leave_out(self, name: str, shape: Mapping[str, Json], why: str) -> Cell:
        """Keep a cell that is not measured, with the reason."""
        return self.keep(unmeasured_cell(name, shape, why))

    def keep(self, cell: Cell) -> Cell:
        """Keep a cell and tell of it."""
        self.cells.append(cell)
        self.listener.cell(cell)
        return cell

    def check(self, check: MeasuredCheck) -> None:
        """Keep a check and tell of it."""
        self.checks.append(check)
        self.listener.check(check)

    def measured(
        self, suite: str, settings: object, values: Values | None = None, more: Mapping[str, Json] | None = None
    ) -> Measured:
        """Put everything together, with a last check: that something was measured, and that all of it is valid."""
        tried = [cell for cell in self.cells if cell.requests or cell.reasons]
        bad = [cell.name for cell in tried if not cell.valid]
        detail = f"void: {', '.join(bad)}" if bad else "" if tried else "no cell was measured"
        self.check(MeasuredCheck("cells", ok=not detail, detail=detail))
        table = jsonable(settings)
        assert isinstance(table, dict)  # noqa: S101 - a dataclass's
        return Measured(
            suite=suite,
            checks=tuple(self.checks),
            values=values or {},
            requests=self.requests,
            void=self.void,
            cells=tuple(self.cells),
            settings={**table, "seed": self.seed, **(more or {})},
            outputs=dict(self.outputs),
        )
