"""A mixed load for minutes or hours: whether it stays as fast as it was, and what host and cards do meanwhile."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Closed
from ttstack.bench.errors import BenchError
from ttstack.bench.suites.answers import compare_answers, keep_answers
from ttstack.bench.suites.beside import beside
from ttstack.bench.suites.cells import BUNDLED, DIGITS, client_of, void_cell
from ttstack.bench.suites.drift import find_drift
from ttstack.bench.suites.session import Session
from ttstack.bench.suites.settings import setting
from ttstack.records.statistics import summarise
from ttstack.records.types import Cell, MeasuredCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.bench.client.types import Ask, LoadResult, Result
    from ttstack.bench.suites.drift import Drift
    from ttstack.bench.suites.session import Listener, Target
    from ttstack.records.types import Json, Measured

NAME = "mixed"
_MOST = 8  # requests at once, unless it is said how many


@dataclass(frozen=True, slots=True)
class Soak:
    """The suite's settings."""

    duration_s: float = setting(600.0, "how long requests are sent", least=0.1)
    concurrency: int = setting(0, f"requests at once; 0: the arm's max-num-seqs, at most {_MOST}", least=0)
    prompt_tokens: tuple[int, ...] = setting((128, 1024, 4096), "lengths of prompts, one drawn for each", least=1)
    output_tokens: tuple[int, ...] = setting((64, 128, 256), "lengths of answers, one drawn for each", least=2)
    sample_every_s: float = setting(5.0, "between two looks at the host and its cards", least=0.05)
    bins: int = setting(20, "spans of time whose means the drift is found from", least=4)
    drift_share: float = setting(0.05, "drift of TPOT that may not be passed, either way", least=0)
    seed: str = setting("", "of prompts and mixture; empty takes a new one")
    timeout_s: float = setting(600.0, "of each request", least=0.001)


def run_soak(target: Target, settings: Soak, listener: Listener) -> Measured:
    """Measure the one cell ``mixed``, a closed loop; its first wave is not measured.

    Checks: ``drift`` holds when the 95 % interval of the drift of TPOT is within the limit, all of it; ``same_answers``
    when the fixed prompts are answered as before. Values: what ``Beside.values`` gives.
    """
    session = Session(target, listener, settings.timeout_s, settings.seed)
    keep_answers(session)
    before = dict(session.outputs)
    count = settings.concurrency or min(target.max_num_seqs or _MOST, _MOST)
    prompts, left_out = _fitting(target, settings)
    with beside(target, settings.sample_every_s) as looks:
        _mixed(session, settings, prompts, count, left_out)
    compare_answers(session, before)
    return session.measured("soak", settings, looks.values(), {"concurrency": count})


def _fitting(target: Target, settings: Soak) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Leave out prompts that do not fit together with the longest answer; say which."""
    why = {size: target.lacks_room(size, max(settings.output_tokens, default=0)) for size in settings.prompt_tokens}
    return tuple(size for size in why if not why[size]), tuple(f"left out: {text}" for text in why.values() if text)


@dataclass(slots=True)
class _Rows:
    """What is kept of each valid request after the first wave; a long load could not keep all of them whole."""

    concurrency: int
    exact: bool = True
    held_back: int = 0  # answers that came all at once
    kinds: list[tuple[int, int]] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)

    def take(self, result: Result) -> None:
        if result.void is not None or result.number < self.concurrency:
            return
        if result.tpot_s is None:
            self.held_back += 1
            return
        prompt = result.usage.prompt if result.usage is not None else 0
        row = {
            "sent_at_s": result.sent or 0.0,
            "prompt_tokens": prompt,
            "output_tokens": result.ask.max_tokens,
            "ttft_s": result.ttft_s or 0.0,
            "e2e_s": result.e2e_s or 0.0,
            "tg_ms_per_token": result.tpot_s * 1000,
        }
        for name, value in row.items():
            self.columns.setdefault(name, []).append(round(value, DIGITS))
        self.kinds.append((prompt, result.ask.max_tokens))
        self.exact = self.exact and result.tpot_exact


def _mixed(session: Session, settings: Soak, prompts: tuple[int, ...], count: int, left_out: tuple[str, ...]) -> None:
    shape: dict[str, Json] = {
        "prompt_tokens": list(prompts),
        "output_tokens": list(settings.output_tokens),
        "concurrency": count,
        "pattern": "closed",
        "duration_s": settings.duration_s,
    }
    if not prompts or not settings.output_tokens:
        session.leave_out(NAME, shape, "; ".join(left_out) or "there is nothing to send")
        return
    rows = _Rows(count)
    warm_up = [ask for size in prompts for ask in session.warm_up(NAME, 1, size, max(settings.output_tokens))]
    try:
        warmed = session.warmed(warm_up, Closed(1))
        load = session.load(
            _asks(session, settings, prompts), Closed(count), duration_s=settings.duration_s, on_result=rows.take
        )
    except BenchError as error:
        session.requests += 1
        session.void += 1
        session.keep(void_cell(NAME, shape, error.message, 1, error.reason))
        return
    session.keep(_cell(shape, load, rows, warmed, left_out))
    drift = find_drift(
        rows.columns.get("sent_at_s", []), rows.columns.get("tg_ms_per_token", []), rows.kinds, settings.bins
    )
    session.check(drift_check(drift, settings.drift_share))


def _asks(session: Session, settings: Soak, prompts: tuple[int, ...]) -> Iterator[Ask]:
    """Draw requests without end; ends by an exception when it is time to."""
    draw = random.Random(f"{session.seed}/mixture")  # noqa: S311 - no secret
    number = 0
    while True:
        session.listener.interrupted()
        yield session.ask(NAME, number, draw.choice(prompts), draw.choice(settings.output_tokens))
        number += 1


def _cell(
    shape: dict[str, Json], load: LoadResult, rows: _Rows, warmed: Sequence[str], left_out: tuple[str, ...]
) -> Cell:
    values = {name: tuple(column) for name, column in rows.columns.items()}
    held_back = f"{rows.held_back} answers came all at once: no time per token can be told"
    against = (*warmed, *load.against, *((held_back,) if rows.held_back else ()))
    reasons = against or (() if values else ("no request was measured after the first wave",))
    return Cell(
        name=NAME,
        shape=shape,
        reasons=reasons,
        values=values,
        stats={name: summarise(samples) for name, samples in values.items()},
        requests=load.requests,
        voids={reason.value: number for reason, number in load.voids.items()},
        client=client_of(load),
        notes=left_out if rows.exact else (*left_out, BUNDLED),
    )


def drift_check(drift: Drift | None, limit: float) -> MeasuredCheck:
    """Judge a drift; one that cannot be told is none that is absent."""
    name, expected = "drift", f"TPOT within {limit:.1%} either way"
    if drift is None:
        return MeasuredCheck(name, ok=False, detail="not told: too few requests for it", expected=expected)
    if drift.within(limit):
        return MeasuredCheck(name, ok=True, detail=drift.told(), expected=expected, found=drift.share)
    sure = drift.low > 0 or drift.high < 0
    verdict = "TPOT drifts" if sure else "not told: the noise is larger than the limit"
    return MeasuredCheck(name, ok=False, detail=f"{verdict}: {drift.told()}", expected=expected, found=drift.share)
