"""What earlier runs left behind: states of another boot, states that are none, closes that two would write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ttstack.errors import Exit
from ttstack.host import process
from ttstack.host.errors import HostError
from ttstack.host.files import read_json, write_json
from ttstack.run.control import down, look_at, runs
from ttstack.run.journal import close_left
from ttstack.run.state import run_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import World

    from ttstack.run.state import RunFolder, State
    from ttstack.run.work import Work


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Break what waits for ever."""

    def late(_number: int, _frame: object) -> None:
        raise RuntimeError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def made(world: World) -> tuple[RunFolder, State]:
    folder = run_folder(world.places.state, world.execute(world.arm("bad", "die:mesh")).run)
    state = folder.read()
    assert state is not None
    return folder, state


def test_a_run_of_an_earlier_boot_has_no_process_here(world: World) -> None:
    """Its numbers are other processes' by now: in the worst case to the tick, or those of a session."""
    folder, state = made(world)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as innocent:
        name = process.identify(innocent.pid)
        assert name is not None
        folder.write(replace(state, phase="ready", boot_id="another", engine=name, supervisor=name, attended=False))
        run = look_at(folder)
        assert run is not None
        assert (run.status, run.engine, run.supervised) == ("lost", (), False)
        for kill in (False, True):
            assert down(run, kill=kill, tell=pytest.fail).phase == "stopped"
        assert innocent.poll() is None


@pytest.mark.parametrize(
    "change",
    [
        {"arm": "x", "text": None},
        {"port": "80"},
        {"supervisor": {"pid": "1", "start": 1}},
        {"engine": 5},
        {"cards": [1]},
    ],
)
def test_a_state_that_is_none_is_named_and_hides_no_other(world: World, change: dict[str, Any]) -> None:
    folder, _ = made(world)
    other, _ = made(world)
    path = folder.path / "state.json"
    write_json(path, {**read_json(path), "phase": "ready", **change})
    told: list[str] = []
    assert [run.folder for run in runs(world.places.state, told.append)] == [other]
    (line,) = told
    assert folder.run in line
    world.ttx("status")
    assert line in world.stderr


def test_what_is_in_a_states_place_is_named(world: World) -> None:
    folder, _ = made(world)
    path = folder.path / "state.json"
    path.write_text("[" * 100_000)
    with pytest.raises(HostError, match="not JSON"):
        folder.read()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(HostError, match="not a regular file"), no_longer_than(5):
        folder.read()
    with pytest.raises(HostError, match="too long"):
        run_folder(world.places.state, "x" * 300).read()


def test_of_many_who_settle_a_run_one_closes_it(world: World) -> None:
    run = world.execute(world.arm(), "up").run
    folder = run_folder(world.places.state, run)
    state = folder.read()
    assert state is not None
    process.send(state.supervisor, signal.SIGKILL)
    os.waitpid(state.supervisor.pid, 0)
    lines: list[object] = []
    everybody = threading.Barrier(4)

    def settle() -> None:
        everybody.wait()
        lines.append(close_left(world.store, folder, "aborted", Exit.FAILED, "supervisor_died", "x"))

    threads = [threading.Thread(target=settle) for _ in range(everybody.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(line is not None for line in lines) == 1
    world.record(run)  # which finds no second close
    world.ttx("down")
    assert world.clean()


@pytest.mark.parametrize("text", ["{}", "", '{"kind": "close", "phases": 1}'])
def test_a_draft_that_is_none_costs_no_close(world: World, text: str) -> None:
    run = world.execute(world.arm(), "up").run
    run_folder(world.places.state, run).draft.write_text(text)
    world.ttx("down")
    closed = world.record(run).closed
    assert closed is not None
    assert (closed.outcome, closed.phases) == ("ok", ())


def test_a_state_keeps_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/st\xff/\xc3\xbc")
    write_json(tmp_path / "x.json", {"path": odd})
    assert read_json(tmp_path / "x.json") == {"path": odd}
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"path": odd}


def test_down_and_ttx_do_not_both_close_a_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its supervisor was killed; `ttx down` settles it while the ttx that runs it finds out."""

    def settled_meanwhile(work: Work) -> None:
        close_left(world.store, work.folder, "aborted", 1, "supervisor_died", "down was first")

    monkeypatch.setattr("ttstack.run.work.Work._measure", settled_meanwhile)
    result = world.execute(world.arm())
    closed = world.record(result.run).closed  # which finds no second close
    assert closed is not None
    assert closed.text == "down was first"
