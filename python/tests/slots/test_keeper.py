"""A program whose ttx was killed keeps its cards, and what it leaves behind keeps none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.cli.hosts import places_for
from ttstack.host.process import alive, identify
from ttstack.slots.keeper import Keeper
from ttstack.slots.view import look

if TYPE_CHECKING:
    from ttstack.host.types import ProcessId

CODE = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"


class Shell:
    """A shell on a simulated host."""

    def __init__(self, base: Path) -> None:
        root = str(Path(__file__).resolve().parents[2])
        paths = os.pathsep.join([root, *(path for path in sys.path if path)])
        self.environ = {**os.environ, "TTX_STATE": str(base / "state"), "PYTHONPATH": paths}
        self.places = places_for(self.environ, simulated=True)

    def run(self, *program: str, session: bool = True) -> tuple[subprocess.Popen[str], ProcessId]:
        """Start a program that says its pid and nothing else."""
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, "slot", "run", "--sim", "--ids", "01:00.0", "--", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environ,
            start_new_session=session,
        )
        assert process.stdout is not None
        named = identify(int(process.stdout.readline()))
        assert named is not None
        return process, named

    def ttx(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", CODE, "slot", *words], capture_output=True, text=True, env=self.environ, check=True
        )
        return done.stdout

    def state(self) -> str:
        return look(self.places)[0].state

    def await_state(self, wanted: str) -> None:
        for _ in range(1000):
            if self.state() == wanted:
                return
            time.sleep(0.01)
        assert self.state() == wanted


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


SLEEP = ("sh", "-c", "echo $$; exec sleep 60")


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(30)


def adopted(shell: Shell) -> ProcessId:
    """Wait until the keeper has put its name into the lock file; return it."""
    for _ in range(1000):
        view = look(shell.places)[0]
        if view.owner_lives and view.claim is not None:
            return view.claim.process
        time.sleep(0.01)
    raise AssertionError(look(shell.places)[0].text)


def test_a_program_whose_ttx_was_killed_keeps_its_card_until_it_ends(shell: Shell) -> None:
    process, program = shell.run(*SLEEP)
    before = look(shell.places)[0].claim
    kill(process)
    keeper = adopted(shell)
    (view, _) = look(shell.places)
    assert view.state == "held"
    assert before is not None
    assert view.claim is not None
    assert (view.claim.run, view.claim.arm, view.claim.since) == (before.run, before.arm, before.since)
    assert keeper not in {before.process, program}
    assert alive(program)
    os.kill(program.pid, signal.SIGKILL)
    shell.await_state("free")
    assert (shell.places.locks / "0000040511940000.lock").read_text() == ""
    for _ in range(1000):
        if not alive(keeper):
            break
        time.sleep(0.01)
    assert not alive(keeper)


def test_a_keeper_sends_on_what_asks_for_the_card_back(shell: Shell) -> None:
    process, _ = shell.run(
        "sh", "-c", "trap 'echo told; exit 0' TERM; echo $$; for i in $(seq 600); do sleep 0.1; done"
    )
    kill(process)
    adopted(shell)
    assert shell.ttx("release", "01:00.0") == "given back: 0000040511940000 (0000:01:00.0)\n"
    assert process.stdout is not None
    assert process.stdout.read() == "told\n"
    assert shell.state() == "free"


def test_what_a_program_leaves_behind_keeps_nothing_though_its_ttx_was_killed(shell: Shell) -> None:
    script = "sleep 60 >&- 2>&- & echo $!; exec sleep 60"
    process, child = shell.run("sh", "-c", script)
    kill(process)
    adopted(shell)
    children = f"/proc/{child.pid}/fd"
    open_there = {os.stat(f"{children}/{name}").st_ino for name in os.listdir(children)}  # noqa: PTH116, PTH208
    assert not open_there & {path.stat().st_ino for path in shell.places.locks.glob("*.lock")}
    shell.ttx("release", "01:00.0")
    assert shell.state() == "free"
    assert alive(child)
    os.kill(child.pid, signal.SIGKILL)


def test_a_keeper_has_none_of_the_pipes_of_its_ttx(shell: Shell) -> None:
    process, program = shell.run("sh", "-c", "echo $$; exec sleep 60 >&- 2>&-")
    kill(process)
    keeper = adopted(shell)
    assert process.stdout is not None
    assert process.stdout.read() == ""  # its end came, though the keeper lives
    assert alive(keeper)
    os.kill(program.pid, signal.SIGKILL)
    shell.await_state("free")


def test_a_keeper_outlives_what_ends_the_group_of_ttx(shell: Shell) -> None:
    process, program = shell.run("setsid", "sh", "-c", "echo $$; exec sleep 60")  # itself, as no leader of a group
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    adopted(shell)
    os.kill(program.pid, signal.SIGKILL)
    shell.await_state("free")


def test_no_keeper_is_left_when_a_program_ended(shell: Shell) -> None:
    process, program = shell.run(*SLEEP)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 2
    keepers = [identify(int(pid)) for pid in children if int(pid) != program.pid]
    os.kill(program.pid, signal.SIGKILL)
    process.wait(30)
    assert shell.state() == "free"
    assert not any(alive(keeper) for keeper in keepers if keeper is not None)


def test_a_killed_keeper_hurts_nobody(shell: Shell) -> None:
    process, program = shell.run(*SLEEP)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in children:
        if int(pid) != program.pid:
            os.kill(int(pid), signal.SIGKILL)
    assert shell.state() == "held"
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert shell.state() == "free"


def test_a_keeper_that_was_ended_has_no_keys_any_more() -> None:
    child = subprocess.Popen(["sleep", "60"])
    Keeper(child.pid).end()
    assert identify(child.pid) is None  # reaped, and not only signalled
    Keeper(child.pid).end()
    child.wait()


UNBORN = """
import os, signal, sys
from ttstack.slots.program import run_program
def beside(_program):
    os.kill(os.getpid(), signal.SIGKILL)
run_program(["sh", "-c", "echo born"], os.environ, beside=beside)
"""


def test_a_program_does_not_start_before_its_cards_are_kept(shell: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNBORN], capture_output=True, text=True, env=shell.environ, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert json.loads(shell.ttx("ls", "--json"))[-2]["state"] == "free"
