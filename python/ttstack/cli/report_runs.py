"""Which runs a report is of, and what the A/Bs among them came to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.record_files import find_run, read_log, tell
from ttstack.errors import UsageError
from ttstack.host.places import records_file, state_folder
from ttstack.records.log import Log
from ttstack.records.report.types import AbRow
from ttstack.records.report.words import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.bench.ab.verdict import Report as AbReport
    from ttstack.records.line import Fault
    from ttstack.records.log import RunRecord

_VERDICTS = {"better", "worse", "no difference detected"}
_SECONDARY = 11  # metrics of an A/B that are shown beside the one that has the verdict


@dataclass(frozen=True, slots=True)
class Chosen:
    """Runs in the order of their opening, the files that they are from, and how many lines of these are no records."""

    runs: tuple[RunRecord, ...]
    files: tuple[Path, ...]
    faults: int
    ab: tuple[AbRow, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The machines that the runs were on."""
        return tuple(dict.fromkeys(run.opened.host.hostname for run in self.runs))


def choose(words: Sequence[str], *, arm: str | None, since: str | None) -> Chosen:
    """Read the files that are named and take the runs that are asked for. Raises UsageError when there are none."""
    files = tuple(path for word in words if (path := _file(word)) is not None)
    names = [word for word in words if _file(word) is None]
    files = files or (records_file(state_folder(os.environ)),)
    log, faults = _read(files)
    where = ", ".join(map(str, files))
    runs = list(log.runs)
    if names:
        wanted = {find_run(name, Path(where), log).id for name in names}
        runs = [run for run in runs if run.id in wanted]
    runs = [run for run in runs if arm in {None, run.arm} and (since is None or run.time >= since)]
    if not runs:
        made = "make one: ttx run sim" if not log.runs else "see: ttx records ls"
        what = f"no runs in {where}" if not log.runs else f"none of the {len(log.runs)} runs in {where} is like that"
        raise UsageError(what, hint=made, reason="no_records")
    return Chosen(tuple(runs), files, faults, tuple(_ab(runs, log.runs)))


def _file(word: str) -> Path | None:
    """Say which file a word names, if any; a run's id has no slash in it and does not end in .jsonl."""
    path = Path(word)
    if path.is_dir():
        return records_file(path)
    if path.suffix == ".jsonl" or "/" in word or path.exists():
        if not path.exists():
            raise UsageError(f"there is no file {word}", hint="or a run: see ttx records ls", reason="no_records")
        return path
    return None


def _read(files: Sequence[Path]) -> tuple[Log, int]:
    """Read files one by one; a run that several have counts once, as the first of them has it."""
    runs: dict[str, RunRecord] = {}
    count = 0
    for path in files:
        log = read_log(path, thorough=False)
        faults: list[Fault] = list(log.faults)
        for run in log.runs:
            fault = run.fault()
            if fault is not None:
                faults.append(fault)
            elif run.id not in runs or runs[run.id].close_line is None:  # another copy may have its end
                runs[run.id] = run
        tell(path, sorted(faults, key=lambda fault: fault.line))
        count += len(faults)
    return Log(tuple(sorted(runs.values(), key=lambda run: run.time)), ()), count


def _ab(chosen: Sequence[RunRecord], every: Sequence[RunRecord]) -> Iterator[AbRow]:
    """Judge each A/B that a chosen run is part of, by all of its runs; the newest first."""
    ids = dict.fromkeys(run.opened.ab.id for run in reversed(chosen) if run.opened.ab is not None)
    if not ids:
        return
    from ttstack.bench.ab.verdict import judge  # noqa: PLC0415 - few records are part of one

    for name in ids:
        yield from _rows(judge([run for run in every if run.opened.ab is not None and run.opened.ab.id == name]))


def _rows(report: AbReport) -> Iterator[AbRow]:
    arms = (text(report.arms[0] or "?"), text(report.arms[1] or "?"))
    runs = [cell.record for cell in report.cells]
    simulated = any(run.opened.simulated for run in runs)
    name, label = text(report.id), f"{arms[0]} against {arms[1]}"
    if report.verdict not in _VERDICTS:
        reasons = tuple(map(text, report.reasons))
        planned = text(report.place.metric)
        yield AbRow(
            name,
            label,
            planned,
            arms,
            None,
            None,
            None,
            report.verdict,
            report.counted,
            simulated=simulated,
            reasons=reasons,
        )
        return
    for at, metric in enumerate(report.metrics[: 1 + _SECONDARY]):
        effect = metric.effects.treatment
        yield AbRow(
            id=name,
            label=f"{label}: {text(metric.name)}",
            metric=text(metric.name),
            arms=arms,
            share=effect.share,
            low=effect.low,
            high=effect.high,
            verdict="" if at else report.verdict,
            pairs=report.counted,
            simulated=simulated,
        )
