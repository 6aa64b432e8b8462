from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ttstack.host.errors import HostError
from ttstack.host.types import Card, ProcessId
from ttstack.run.state import RunFolder, State, run_folder

if TYPE_CHECKING:
    from pathlib import Path

STATE = State(
    run="20260131T235959-4f2a9c",
    arm="prod",
    since="2026-01-31T23:59:59Z",
    boot_id="b",
    simulated=False,
    phase="ready",
    step="ready",
    supervisor=ProcessId(11, 5),
    engine=ProcessId(12, 6),
    cards=(Card("/dev/tenstorrent/0", 0, "0000:01:00.0", "00000401aaaa0001", "53a1", "p150a"),),
    host="127.0.0.1",
    port=8000,
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = run_folder(tmp_path, STATE.run)
    made.path.mkdir(parents=True)
    made.write(STATE)
    return made


def test_a_run_is_found_again_and_knows_where_it_lies(folder: RunFolder, tmp_path: Path) -> None:
    assert folder.read() == STATE
    assert folder.state == tmp_path
    assert run_folder(tmp_path, "none").read() is None


def test_a_state_of_a_newer_ttx_is_read(folder: RunFolder) -> None:
    path = folder.path / "state.json"
    table = json.loads(path.read_text())
    for part in (table, table["supervisor"], table["engine"], table["cards"][0]):
        part["added later"] = 1
    path.write_text(json.dumps(table))
    assert folder.read() == STATE


@pytest.mark.parametrize("lost", ["supervisor", "phase"])
def test_a_state_that_lacks_something_is_none(folder: RunFolder, lost: str) -> None:
    path = folder.path / "state.json"
    table = json.loads(path.read_text())
    del table[lost]
    path.write_text(json.dumps(table))
    with pytest.raises(HostError, match="is not the state of a run"):
        folder.read()
