"""What ``ttx top`` says of cards and runs, cell by cell, for its screen as for its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.traffic import Traffic
from ttstack.cli.human import size
from ttstack.cli.live import note_of
from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.run.top.types import CardNow, RunNow

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_EXACT = 100  # from here on a rate has no decimals

GOOD, BUSY, BAD, DIM = "green", "yellow", "bold red", "dim"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Where there is no room for a table a cell stands between ``before`` and ``after``."""

    title: str
    before: str = ""
    after: str = ""
    right: bool = False
    least: int = 0  # characters; numbers that come and go must not make a table jump


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, "" when there is nothing to say, and rich's style."""

    text: str
    style: str = ""


CARD_COLUMNS = (
    Column("CARD"),
    Column("BDF"),
    Column("BOARD"),
    Column("TEMP", right=True, least=7),
    Column("CLOCK", right=True, least=8),
    Column("POWER", right=True, least=7),
    Column("BEAT", least=7),
    Column("SLOT", least=7),
    Column("HOLDER"),
)
RUN_COLUMNS = (
    Column("ARM"),
    Column("STATUS", least=8),
    Column("AGE", right=True, least=9),
    Column("GEN TOK/S", "gen ", " tok/s", right=True, least=7),
    Column("PROMPT TOK/S", "prompt ", " tok/s", right=True, least=7),
    Column("RUNNING", after=" running", right=True),
    Column("WAITING", after=" waiting", right=True),
    Column("KV", "KV ", right=True, least=5),
    Column("HITS", "prefix hits ", right=True, least=5),
    Column("TTFT", "TTFT ", right=True, least=7),
    Column("ITL", "ITL ", right=True, least=7),
    Column("MEMORY", "memory ", right=True, least=8),
    Column("PORT", "port ", right=True, least=5),
    Column("SERVER", "server: ", least=10),
    Column("RUN"),
)
_ASKING = {
    "not_asked": Cell(""),
    "first": Cell("asked", DIM),
    "answered": Cell("answers", GOOD),
    "no_answer": Cell("no answer", BAD),
    "no_metrics": Cell("no metrics", BUSY),
    "foreign": Cell("not ours", BAD),
}
_STATUS = {"ready": GOOD, "booting": BUSY, "stopping": BUSY, "dirty": BAD, "orphaned": BAD}
_SLOT = {"free": GOOD, "held": "", "dirty": BAD, "open": BUSY, "unknown": BUSY}


def card_cells(now: CardNow, degree: str = "°C") -> list[Cell]:
    """Describe a card, in the order of ``CARD_COLUMNS``."""
    card, told = now.card, now.telemetry
    beat = {True: Cell("alive", GOOD), False: Cell("STOPPED", BAD), None: Cell("")}[now.beats]
    return [
        Cell(card.id),
        Cell(card.bdf),
        Cell(card.board),
        Cell(_given(told.temperature_c, lambda value: f"{value:.1f} {degree}")),
        Cell(_given(told.clock_mhz, lambda value: f"{value:.0f} MHz")),
        Cell(_given(told.power_w, lambda value: f"{value:.1f} W")),
        Cell("simulated", DIM) if now.simulated else beat,
        Cell("?", DIM) if now.slot is None else Cell(now.slot.state, _SLOT[now.slot.state]),
        Cell(_holder(now)),
    ]


def run_cells(now: RunNow) -> list[Cell]:
    """Describe a run, in the order of ``RUN_COLUMNS``."""
    state, traffic = now.live.state, now.metrics.traffic or Traffic()
    return [
        Cell(printable(state.arm), "bold"),
        Cell(now.live.status, _STATUS.get(now.live.status, "")),
        Cell(_given(now.age_s, age)),
        Cell(_given(traffic.generation_tokens_per_s, _rate)),
        Cell(_given(traffic.prompt_tokens_per_s, _rate)),
        Cell(_given(traffic.running, _count)),
        Cell(_given(traffic.waiting, _count), BUSY if traffic.waiting else ""),
        Cell(_given(traffic.kv_use, _share)),
        Cell(_given(traffic.prefix_hits, _share)),
        Cell(_given(traffic.first_token_s, _span)),
        Cell(_given(traffic.between_tokens_s, _span)),
        Cell(_given(now.memory_bytes, size)),
        Cell(str(state.port)),
        _ASKING[now.metrics.asking],
        Cell(printable(state.run), DIM),
    ]


def run_notes(now: RunNow) -> list[Cell]:
    """Say what else a person should know of a run, each on a line of its own: the last is that of its log."""
    said = [Cell(note_of(now.live), _STATUS.get(now.live.status, "")), Cell(now.metrics.detail, BAD)]
    said.append(Cell(now.last_line.expandtabs(4).strip(), DIM))
    return [Cell(printable(cell.text), cell.style) for cell in said if cell.text]


def age(seconds: float) -> str:
    """Write how long something has been there."""
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def _holder(now: CardNow) -> str:
    view = now.slot
    if view is None:
        return ""
    if view.claim is not None and view.state == "held" and view.owner_lives:
        return f"{view.claim.arm} ({view.claim.run}, {view.claim.user})"
    return view.text


def _given(value: float | None, write: Callable[[float], str]) -> str:
    return "" if value is None else write(value)


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < _EXACT else f"{value:.0f}"


def _count(value: float) -> str:
    return f"{value:.0f}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _span(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
