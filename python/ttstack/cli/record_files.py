"""Which records a verb looks at, and what is told of lines that are none."""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, note
from ttstack.errors import TtxError, UsageError
from ttstack.host.places import records_file, state_folder
from ttstack.host.process import alive, boot_id
from ttstack.host.types import ProcessId
from ttstack.records.store import Store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ttstack.records.line import Fault
    from ttstack.records.log import Log, RunRecord
    from ttstack.records.types import Opened

_TOLD = 20  # faults that are told one by one


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add ``--records`` and ``--json``."""
    parser.add_argument("--records", type=Path, metavar="FILE", help="the records of another host, or their folder")
    add_json(parser)


def file_of(args: argparse.Namespace, *, must_exist: bool = True) -> Path:
    """Find the file that is meant. Raises UsageError when one was named that is not there."""
    if args.records is None:
        return records_file(state_folder(os.environ))
    path: Path = records_file(args.records) if args.records.is_dir() else args.records
    if must_exist and not path.exists():
        hint = "--records takes a records.jsonl, or the state folder that holds it"
        raise UsageError(f"there is no file {path}", hint=hint, reason="no_records")
    return path


def read_log(path: Path, *, thorough: bool = True) -> Log:
    """Read the records, and who of those that are not closed runs."""
    return Store(path).read(partial(_lives, path.parent), thorough=thorough)


def tell(path: Path, faults: Sequence[Fault]) -> None:
    """Say on stderr which lines are none."""
    for fault in faults[:_TOLD]:
        run = f" of run {fault.run}" if fault.run else ""
        note(f"{path}:{fault.line}: left out, {fault.kind}{run}: {fault.message}")
    if len(faults) > _TOLD:
        note(f"{path}: {len(faults) - _TOLD} more lines are left out; `ttx records verify` names them all")


def find_run(name: str, path: Path, log: Log) -> RunRecord:
    """Find a run by its id, or by the start of it; ``last`` is the newest. Raises UsageError."""
    if not log.runs:
        raise UsageError(f"no runs in {path}", hint="make one: ttx run sim", reason="no_records")
    if name == "last":
        return log.runs[-1]
    found = [run for run in log.runs if run.id == name] or [run for run in log.runs if run.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    ids = [run.id for run in found] if found else get_close_matches(name, [run.id for run in log.runs], 3)
    what = f"{len(found)} runs begin with {name!r}" if found else f"no run {name!r} in {path}"
    raise UsageError(
        what, hint=f"did you mean: {', '.join(ids[-5:])}" if ids else "see: ttx records ls", reason="no_run"
    )


def _lives(state: Path, opened: Opened) -> bool:
    """Whether who opened a run lives, or who adopted it since: its state says so."""
    from ttstack.run.state import run_folder  # noqa: PLC0415 - few runs are neither closed nor their first owner's

    owner = opened.owner
    if owner.boot_id != boot_id():
        return False
    if alive(ProcessId(owner.pid, owner.start)):
        return True
    try:
        now = run_folder(state, opened.run).read()
    except TtxError:
        return False
    return now is not None and now.boot_id == owner.boot_id and alive(now.supervisor)
