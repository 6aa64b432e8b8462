"""A small history of two arms for the tests of reports: sweeps, loads, changes, refusals, void cells, an A/B."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import BytesIO
from statistics import median
from typing import TYPE_CHECKING

from records_kit import HOST, IDENTITY, OBSERVED, asked, close_line, open_line

from ttstack.records.log import nobody, read_stream
from ttstack.records.report.gather import gather
from ttstack.records.report.types import AbRow
from ttstack.records.statistics import summarise
from ttstack.records.store import encode
from ttstack.records.types import Cell, Measured, MeasuredCheck, Phase

if TYPE_CHECKING:
    from ttstack.records.log import Log
    from ttstack.records.report.types import Report
    from ttstack.records.types import Json

BEGIN = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
NASTY = "<script>alert(1)</script> a|b\nc `d` *e* \u202eevil @user #12"
"""What a name must not be able to do: run, end a table's cell or line, turn the direction of writing."""

AB_ROWS = (
    AbRow("ab-1", "prod against prod-prefix", "b1/tg_ms_per_token", ("prod", "prod-prefix"), -0.031, -0.045, -0.017,
          "better", 8, simulated=False),
    AbRow("ab-1", "prod against prod-prefix: TTFT", "b1/ttft_s", ("prod", "prod-prefix"), 0.004, -0.011, 0.019, "", 8,
          simulated=False),
    AbRow("ab-2", "prod against slow", "b1/tg_ms_per_token", ("prod", "slow"), 0.052, 0.031, 0.073, "worse", 6,
          simulated=False),
    AbRow("ab-3", "sim against sim", "request_s", ("sim", "sim"), 0.01, -0.02, 0.04, "no difference detected", 4,
          simulated=True),
    AbRow("ab-4", "prod against prod-new", "b1/tg_ms_per_token", ("prod", "prod-new"), None, None, None, "invalid", 3,
          simulated=False, reasons=("2 of 5 answers of B are not those of A",)),
)  # fmt: skip


def cell(name: str, shape: dict[str, Json], values: dict[str, tuple[float, ...]], *reasons: str) -> Cell:
    stats = {key: summarise(samples) for key, samples in values.items()}
    requests = max(map(len, values.values()), default=0)
    return Cell(name, shape, reasons, values, stats, requests=requests, voids={"short": 1} if reasons else {})


def smoke(*samples: float) -> Measured:
    return Measured("smoke", (MeasuredCheck("c", ok=True),), {"request_s": samples}, requests=len(samples))


def sweep(noise: random.Random, speed: float = 1.0, *void: int) -> Measured:
    cells = []
    for size in (1024, 2048, 4096, 8192, 16384, 32768):
        ttft = tuple(round((0.08 + size / 4100 * (1 + size / 9e4)) * speed * noise.gauss(1, 0.02), 6) for _ in range(3))
        values = {
            "ttft_s": ttft,
            "pp_tokens_per_s": tuple(round(size / each, 3) for each in ttft),
            "tg_ms_per_token": tuple(round((31 + size / 4000) * speed * noise.gauss(1, 0.01), 4) for _ in range(3)),
        }
        reasons = ("1 of 3 requests are void: short",) if size in void else ()
        shape: dict[str, Json] = {"prompt_tokens": size, "output_tokens": 64, "concurrency": 1, "runs": 3}
        cells.append(replace(cell(f"prompt {size}", shape, values, *reasons), server={"prefill_s": ttft}))
    whole = {"prefill_fixed_s": (0.081,), "prefill_ms_per_token": (0.2439,), "prefill_residual_s": (0.1, -0.1)}
    return Measured(
        "sweep32k", (MeasuredCheck("needle", ok=True),), whole, requests=18, void=len(void), cells=tuple(cells)
    )


def load(noise: random.Random, speed: float = 1.0) -> Measured:
    shape: dict[str, Json] = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 1, "runs": 5}
    tg = tuple(round(31.2 * speed * noise.gauss(1, 0.01), 4) for _ in range(5))
    ttft = tuple(round(0.33 * speed * noise.gauss(1, 0.02), 5) for _ in range(5))
    cells = [cell("b1", shape, {"ttft_s": ttft, "tg_ms_per_token": tg})]
    for count in (1, 2, 4, 8, 16, 32):
        each = [(30 + 0.55 * count) * speed * noise.gauss(1, 0.02) for _ in range(count * 3)]
        values = {
            "tg_ms_per_token": tuple(round(value, 4) for value in each),
            "ttft_s": tuple(round(0.3 + 0.02 * count * noise.gauss(1, 0.1), 5) for _ in each),
            "tokens_per_s": (round(1000 * count / median(each), 3),),
            "goodput_share": (1.0 if count < 32 else 0.9375,),
        }
        shape = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": count, "pattern": "closed", "waves": 5}
        cells.append(cell(f"c{count}", shape, values))
    return Measured("infbench", (MeasuredCheck("usage", ok=True),), {}, requests=194, cells=tuple(cells))


def phases(noise: random.Random, boot: float = 212.0) -> tuple[Phase, ...]:
    lengths = {"check": 0.4, "slot": 0.1, "cache": 3.0, "boot": boot, "identify": 2.5, "measure": 140.0, "stop": 11.0}
    return tuple(Phase(name, round(seconds * noise.uniform(0.9, 1.1), 3)) for name, seconds in lengths.items())


def run_lines(at: int, arm: str, measured: Measured | None, *, pin: str = "current", **change: object) -> list[bytes]:
    """Give the two lines of a run; ``at`` counts both runs and steps of seven hours."""
    noise = random.Random(at)  # noqa: S311 - noise that is the same each time
    now = BEGIN + timedelta(hours=7 * at)
    name = f"{now:%Y%m%dT%H%M%S}-{at:06x}"
    simulated = bool(change.pop("simulated", False))
    max_seqs = change.pop("max_num_seqs", 32)
    overlays = change.pop("overlays", [])
    digest = sha256(f"{arm} {max_seqs} {overlays}".encode()).hexdigest()
    table: dict[str, Json] = {"name": arm, "engine": {"args": {"max-num-seqs": max_seqs}}, "overlays": overlays}  # type: ignore[dict-item]
    what = replace(
        asked(table),
        arm_digest=digest,
        pin_digest=sha256(pin.encode()).hexdigest(),
        suite=measured.suite if measured else "",
    )
    what = replace(what, pin={"name": pin, "tt_metal": f"{pin}-commit"})
    what = replace(what, **{key: change.pop(key) for key in ("arm_digest", "model_digest", "url") if key in change})  # type: ignore[arg-type]
    opened = open_line(
        name,
        arm=arm,
        asked=what,
        simulated=simulated,
        host=replace(HOST, hostname=str(change.pop("hostname", "cardhost"))),
        now=now,
    )
    defaults = {
        "measured": measured,
        "identity": IDENTITY if measured else None,
        "observed": OBSERVED,
        "phases": phases(noise),
    }
    closed = close_line(name, **{**defaults, "now": now + timedelta(minutes=6), **change})
    return [encode(opened), encode(closed)]


def history() -> list[bytes]:
    """Give the lines of eighteen runs over five days."""
    noise = random.Random(7)  # noqa: S311 - as above
    lines: list[bytes] = []
    for at in range(12):
        pin = "current" if at < 5 else "next"
        speed = 1.0 if at < 8 else 0.93
        overlay = [{"source": "/src/qwen", "target": "models/demos/qwen"}] if at >= 8 else []
        measured = sweep(noise, speed, *([4096] if at == 7 else [])) if at % 2 else load(noise, speed)
        lines += run_lines(at, "prod", measured, pin=pin, overlays=overlay)
    lines += run_lines(12, "prod-prefix", sweep(noise, 0.8), pin="next")
    lines += run_lines(13, "prod-prefix", load(noise, 1.05), pin="next")
    lines += run_lines(14, "sim", load(noise, 0.02), pin="sim", simulated=True)
    lines += run_lines(15, "trial", sweep(noise, 1.3, 8192), identity=None, max_num_seqs=8)
    refused = {
        "outcome": "refused",
        "exit_code": 3,
        "reason": "slot_busy",
        "observed": None,
        "phases": phases(noise)[:2],
    }
    lines += run_lines(16, "prod", None, text="card 0000:01:00.0 is held by run x since 09:12", **refused)
    failed = {
        "outcome": "failed",
        "exit_code": 1,
        "reason": "boot_failed",
        "text": "the engine ended with exit code 134",
    }
    lines += run_lines(17, "trial", None, **failed)
    return lines


def log_of(lines: list[bytes]) -> Log:
    data = b"".join(lines)
    return read_stream(BytesIO(data), len(data), nobody)


def report_of(lines: list[bytes], **more: object) -> Report:
    log = log_of(lines)
    assert not log.faults, log.faults
    settings = {
        "title": "A report",
        "made": BEGIN + timedelta(days=6),
        "files": ("records.jsonl",),
        "ab": AB_ROWS,
        **more,
    }
    return gather(log.runs, **settings)  # type: ignore[arg-type]
