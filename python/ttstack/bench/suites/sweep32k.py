"""Prefill and decode from 1k to 32k tokens, one request at a time; a needle at each length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Closed
from ttstack.bench.errors import BenchError
from ttstack.bench.suites.answers import keep_answers
from ttstack.bench.suites.fit import fit_line
from ttstack.bench.suites.needle import ANSWER_TOKENS, Needles, find_needle, needle_rule, prepare
from ttstack.bench.suites.session import Session
from ttstack.bench.suites.settings import setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.bench.suites.session import Listener, Target
    from ttstack.records.types import Cell, Measured


@dataclass(frozen=True, slots=True)
class Sweep32k:
    """The suite's settings."""

    prompt_tokens: tuple[int, ...] = setting((1024, 2048, 4096, 8192, 16384, 32768), "lengths of the prompts", least=1)
    output_tokens: int = setting(64, "tokens of each answer", least=2)
    runs: int = setting(3, "measured requests of each length", least=1)
    warmup_runs: int = setting(1, "requests of the same length before them, with other prompts", least=0)
    needle: bool = setting(default=True, about="look for a needle at each length")
    seed: str = setting("", "of the prompts; empty takes a new one")
    timeout_s: float = setting(900.0, "of each request", least=0.001)


def run_sweep32k(target: Target, settings: Sweep32k, listener: Listener) -> Measured:
    """Measure a cell for each length, then separate what a prompt costs from what each of its tokens costs.

    Values, by least squares of TTFT over the length, all valid requests: ``prefill_fixed_s`` and
    ``prefill_ms_per_token`` with the half widths of their 95 % intervals (``..._reach_...``), and
    ``prefill_residual_s`` of each request, in the order of ``prefill_at_tokens``. Where the residuals bend, prefill is
    no straight line (attention grows with the square of the length), and the fixed part is that of the line only.
    """
    session = Session(target, listener, settings.timeout_s, settings.seed)
    keep_answers(session)
    needles = _needles(session) if settings.needle else ""
    for size in settings.prompt_tokens:
        _length(session, settings, size)
        if settings.needle and not target.lacks_room(size, max(settings.output_tokens, ANSWER_TOKENS)):
            session.check(find_needle(session, needles, size))
    more = {"needle_rule": needle_rule(target)} if settings.needle else None
    return session.measured("sweep32k", settings, line_values(session.cells), more)


def _needles(session: Session) -> Needles | str:
    try:
        return prepare(session.target, session.timeout_s)
    except BenchError as error:
        return error.message


def _length(session: Session, settings: Sweep32k, size: int) -> None:
    name, tokens = f"prompt-{size}", settings.output_tokens
    shape = {"prompt_tokens": size, "output_tokens": tokens, "concurrency": 1, "runs": settings.runs}
    why = session.target.lacks_room(size, tokens)
    if why:
        session.leave_out(name, shape, why)
        return
    session.cell(
        name,
        shape,
        warm_up=session.warm_up(name, settings.warmup_runs, size, tokens),
        asks=session.asks(name, settings.runs, size, tokens),
        pattern=Closed(1),
    )


def line_values(cells: Sequence[Cell]) -> dict[str, tuple[float, ...]]:
    """Fit TTFT over the length of the prompt; {} without two lengths. Void cells take no part."""
    points = [
        (float(str(cell.shape["prompt_tokens"])), ttft_s)
        for cell in cells
        if cell.valid
        for ttft_s in cell.values.get("ttft_s", ())
    ]
    line = fit_line([x for x, _ in points], [y for _, y in points])
    if line is None:
        return {}
    found: dict[str, tuple[float, ...]] = {
        "prefill_fixed_s": (line.fixed,),
        "prefill_ms_per_token": (line.slope * 1000,),
        "prefill_at_tokens": tuple(x for x, _ in points),
        "prefill_residual_s": tuple(round(left, 7) for left in line.residuals),
    }
    if line.fixed_reach is not None and line.slope_reach is not None:
        found["prefill_fixed_reach_s"] = (line.fixed_reach,)
        found["prefill_reach_ms_per_token"] = (line.slope_reach * 1000,)
    return found
