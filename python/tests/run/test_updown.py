"""``up``, ``status``, ``down``, ``slot ls``, and what is refused before anything is started."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ttstack.host import process
from ttstack.run import preflight
from ttstack.run.control import choose, down, look_at, runs
from ttstack.run.errors import RunRefusedError
from ttstack.run.state import run_folder
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import World


def test_up_leaves_an_engine_that_status_shows_and_down_stops(world: World) -> None:
    world.arm()
    made = json.loads(world.ttx("up", "quick", "--json"))
    (entry,) = json.loads(world.ttx("status", "--json"))
    assert (entry["run"], entry["arm"], entry["status"]) == (made["run"], "quick", "ready")
    assert entry["state"]["attended"] is False
    with urllib.request.urlopen(f"{entry['url']}/v1/models", timeout=10) as answer:  # noqa: S310 - our own engine
        assert json.load(answer)["data"][0]["id"] == "tiny"
    (first, second) = json.loads(world.ttx("slot", "ls", "--json"))[-2:]
    assert (first["state"], first["claim"]["run"], second["state"]) == ("held", made["run"], "free")
    assert first["owner_lives"] is True
    assert list(made) == [*entry, "closed"]
    assert (made["url"], made["log"], made["closed"]) == (entry["url"], entry["log"], None)
    assert made["run"] in world.ttx("status", "quick")
    assert "ready" in world.ttx("status")
    refused = world.execute(world.arm("other", cards=f'ids = ["{first["card"]["bdf"]}"]'))
    assert (refused.exit_code, refused.error.reason) == (3, "busy")  # type: ignore[union-attr]
    assert made["run"] in str(refused.error)
    assert world.record(refused.run).outcome == "refused"
    assert world.record(made["run"]).closed is None
    assert json.loads(world.ttx("down", "quick", "--json"))["status"] == "stopped"
    assert "is stopped" in world.ttx("down", made["run"])
    assert world.clean()
    closed = world.record(made["run"]).closed
    assert closed is not None
    assert (closed.outcome, closed.reason, closed.exit_code, closed.quotable) == ("ok", "", 0, False)
    assert closed.identity is not None
    assert closed.observed is not None
    assert closed.observed.served_root
    assert world.ttx("status") == ""
    assert "nothing runs here" in world.stderr
    world.ttx("down", code=2)
    world.ttx("down", "quick", code=2)
    world.ttx("status", "no-such-run", code=2)


def test_run_prints_its_closing_line_and_nothing_else_as_json(world: World) -> None:
    world.arm()
    closed = json.loads(world.ttx("run", "quick", "--json"))
    assert (closed["kind"], closed["outcome"], closed["quotable"], closed["exit_code"]) == ("close", "ok", True, 0)
    assert [phase["name"] for phase in closed["phases"]] == [
        *("check", "slot", "cache", "boot", "identify", "measure", "stop")
    ]
    assert closed["observed"]["cards"][0]["bdf"] == "0000:01:00.0"
    assert "boot: ready" in world.stderr
    assert "\x1b" not in world.stderr


def test_a_mesh_takes_both_cards(world: World) -> None:
    outcome = world.execute(world.arm("pair", cards="count = 2"))
    assert outcome.exit_code == 0, outcome.error
    assert "multidevice with 2 devices" in (world.places.state / "runs" / outcome.run / "engine.log").read_text()


def test_two_runs_for_one_card_do_not_run_at_once(world: World) -> None:
    one = 'ids = ["0000:01:00.0"]'
    world.arm("one", cards=one)
    world.arm("two", cards=one)
    racers = [world.start("run", name, "--no-wait") for name in ("one", "two")]
    codes = []
    for racer in racers:
        racer.communicate(timeout=60)
        codes.append(racer.returncode)
    assert sorted(codes) in ([0, 3], [0, 0])  # both only when the second came after the first had ended
    logs = world.store.read().runs
    if codes != [0, 0]:
        assert sorted(run.outcome for run in logs) == ["ok", "refused"]
        assert {run.closed.reason for run in logs if run.closed} == {"", "busy"}
    assert world.clean()


def test_those_who_wait_run_one_after_the_other(world: World) -> None:
    one = 'ids = ["0000:01:00.0"]'
    world.arm("one", cards=one)
    world.arm("two", cards=one)
    racers = [world.start("run", name, "--wait", "60") for name in ("one", "two")]
    for racer in racers:
        assert racer.communicate(timeout=90)
        assert racer.returncode == 0
    assert world.clean()


def test_an_engine_without_a_supervisor_keeps_its_card_until_down(world: World) -> None:
    run = world.execute(world.arm(), "up").run
    folder = run_folder(world.places.state, run)
    state = folder.read()
    assert state is not None
    process.send(state.supervisor, signal.SIGKILL)
    os.waitpid(state.supervisor.pid, 0)  # it is a child of this very process here
    assert world.slots() == ["held", "free"]
    (entry,) = json.loads(world.ttx("status", "--json"))
    assert entry["status"] == "orphaned"
    assert "supervisor is gone" in world.ttx("slot", "ls")
    assert world.record(run).outcome == "aborted"
    world.ttx("down")
    assert world.clean()
    closed = world.record(run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("aborted", "supervisor_died")
    assert closed.identity is not None  # what was known is not lost
    again = look_at(folder)
    assert again is not None
    assert again.status == "stopped"


def test_the_engine_is_found_even_when_the_state_never_named_it(world: World) -> None:
    run = world.execute(world.arm(), "up").run
    folder = run_folder(world.places.state, run)
    state = folder.read()
    assert state is not None
    process.send(state.supervisor, signal.SIGKILL)
    os.waitpid(state.supervisor.pid, 0)
    folder.write(replace(state, engine=None))
    live = choose(runs(world.places.state), run)
    assert [entry.pid for entry in live.engine] == world.engines()
    down(live, kill=False, tell=lambda _: None)
    assert world.clean()


def test_a_run_whose_supervisor_is_killed_fails_and_stops_its_engine(world: World) -> None:
    world.arm("slow", "hang:mesh")
    ttx = world.start("run", "slow", "--json")
    assert wait_until(lambda: len(world.engines()) == 1 and world.slots()[0] == "held", 30)
    (pid,) = world.supervisors()
    name = process.identify(pid)
    assert name is not None
    process.send(name, signal.SIGKILL)
    out, err = ttx.communicate(timeout=60)
    assert ttx.returncode == 1, err
    assert json.loads(out)["reason"] == "supervisor_died"
    assert world.clean()


def test_an_engine_that_ignores_sigterm_is_dirty_until_it_is_killed(world: World) -> None:
    outcome = world.execute(world.arm("stubborn", "ignore-sigterm", stop_grace_s=1), "up")
    assert outcome.exit_code == 0, outcome.error
    world.ttx("down", code=1)
    assert "--kill" in world.stderr
    assert world.slots() == ["dirty", "free"]
    assert "DIRTY" in world.ttx("slot", "ls")
    assert "dirty" in world.ttx("status")
    closed = world.record(outcome.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", "stop_failed")
    refused = world.execute(world.arm("next", cards='ids = ["0000:01:00.0"]'))
    assert refused.exit_code == 3
    assert "DIRTY" in str(refused.error)
    world.ttx("down", outcome.run, "--kill")
    assert "reset" in world.stderr
    assert world.clean()
    assert world.ttx("status") == ""


def test_down_stops_a_run_that_another_ttx_waits_for(world: World) -> None:
    world.arm("slow", "hang:mesh")
    ttx = world.start("run", "slow", "--json")
    assert wait_until(lambda: len(world.engines()) == 1, 30)
    world.ttx("down", "slow")
    out, _ = ttx.communicate(timeout=60)
    assert (ttx.returncode, json.loads(out)["outcome"]) == (130, "interrupted")
    assert world.clean()


def test_an_engine_that_dies_while_it_serves_ends_its_run(world: World) -> None:
    outcome = world.execute(world.arm(), "up")
    (pid,) = world.engines()
    name = process.identify(pid)
    assert name is not None
    process.send(name, signal.SIGKILL)
    assert wait_until(lambda: world.record(outcome.run).closed is not None, 30)
    closed = world.record(outcome.run).closed
    assert closed is not None
    assert (closed.outcome, closed.reason) == ("failed", "engine_died")
    assert "SIGKILL" in closed.text
    assert world.clean()


def test_a_port_in_use_is_refused_and_its_holder_is_named(world: World) -> None:
    arm = world.arm()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        outcome = world.execute(world.arm("taken", port=port))
        assert (outcome.exit_code, outcome.error.reason) == (3, "port_busy")  # type: ignore[union-attr]
        assert f"pid {os.getpid()}" in str(outcome.error)
    assert world.record(outcome.run).outcome == "refused"
    assert world.clean()
    assert arm.exists()


def test_a_missing_checkpoint_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    outcome = world.execute(world.arm())
    assert (outcome.exit_code, outcome.error.reason) == (3, "model_missing")  # type: ignore[union-attr]
    assert [phase.name for phase in world.record(outcome.run).closed.phases] == ["check"]  # type: ignore[union-attr]


def test_a_cache_that_would_not_fit_is_refused(world: World, tmp_path: Path) -> None:
    models = tmp_path / "arms" / "models.toml"
    models.write_text(models.read_text().replace("0.001", "1e9"))
    outcome = world.execute(world.arm())
    assert (outcome.exit_code, outcome.error.reason) == (3, "no_space")  # type: ignore[union-attr]
    assert world.clean()


def test_a_cache_that_cannot_be_written_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight.os, "access", lambda *_: False)  # root may write anything
    outcome = world.execute(world.arm())
    assert (outcome.exit_code, outcome.error.reason) == (3, "cache_unwritable")  # type: ignore[union-attr]


def test_more_cards_than_there_are_is_told_with_those_there_are(world: World) -> None:
    outcome = world.execute(world.arm("far", cards='ids = ["0000:09:00.0"]'))
    assert outcome.exit_code == 2
    assert "0000:01:00.0" in str(outcome.error)
    assert world.record(outcome.run).outcome == "refused"


def test_an_unknown_suite_is_a_usage_error_and_no_record(world: World) -> None:
    world.arm()
    world.ttx("run", "quick", "--suite", "smok", code=2)
    assert "did you mean smoke" in world.stderr
    assert world.store.read().runs == ()


def test_a_program_that_is_not_there_fails_the_run(world: World) -> None:
    outcome = world.execute(world.arm(), engine_command=("no-such-engine-here",))
    assert (outcome.exit_code, outcome.error.reason) == (1, "engine_not_started")  # type: ignore[union-attr]
    assert world.clean()


LAST_WORDS = """
import time
print("EngineCore failed to start.", flush=True)
time.sleep(0.5)
print("RuntimeError: the root cause", flush=True)
raise SystemExit(3)
"""


def test_an_engine_that_failed_may_say_why(world: World) -> None:
    outcome = world.execute(world.arm(), engine_command=(sys.executable, "-c", LAST_WORDS))
    assert (outcome.exit_code, outcome.error.reason) == (1, "engine_failed")  # type: ignore[union-attr]
    assert world.recorder.tail[-1] == "RuntimeError: the root cause"
    assert outcome.state is not None
    assert outcome.state.exit_code == 3


STRAY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, close_fds=False)
"""
# A child with no mark in its environment, but in the engine's session.
UNMARKED = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}, close_fds=False)
"""
SERVES = 'print("Application startup complete.", flush=True)\ntime.sleep(600)\n'


@pytest.mark.parametrize(
    ("program", "reason"), [(STRAY, "engine_died"), (STRAY + SERVES, "identity"), (UNMARKED, "engine_died")]
)
def test_children_are_stopped_with_their_engine(world: World, program: str, reason: str) -> None:
    outcome = world.execute(world.arm(), engine_command=(sys.executable, "-c", program))
    assert outcome.error is not None
    assert outcome.error.reason == reason
    assert outcome.state is not None
    assert outcome.state.phase == "stopped"
    assert world.clean()


def test_a_record_that_cannot_be_opened_starts_nothing(world: World) -> None:
    (world.places.state / "records.jsonl").mkdir(parents=True)
    world.arm()
    world.ttx("run", "quick", code=1)
    assert "records.jsonl" in world.stderr
    assert wait_until(lambda: world.supervisors() == [], 30)
    assert world.clean()


def test_check_port_names_the_address(world: World) -> None:
    del world
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(RunRefusedError, match=f"port {port} on 127"):
            preflight.check_port("127.0.0.1", port)


def test_a_port_that_a_run_has_names_the_run(world: World) -> None:
    del world
    script = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "TTX_RUN": "20260131T235959-4f2a9c"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        with pytest.raises(RunRefusedError) as told:
            preflight.check_port("127.0.0.1", port)
        child.communicate(timeout=10)
    assert told.value.hint.startswith("stop its run: ttx down 20260131T235959-4f2a9c, or ")
