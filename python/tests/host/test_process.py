from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ttstack.host import process
from ttstack.host.types import ProcessId

if TYPE_CHECKING:
    from pathlib import Path

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def until(condition: object, seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def child() -> object:
    popen = subprocess.Popen(SLEEP, start_new_session=True)
    yield popen
    popen.kill()
    popen.wait()


def test_stat_is_split_after_the_last_parenthesis() -> None:
    text = "42 (a) S 1 (b) S 7 42 43 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 3133440 382"
    seen = process.parse_stat(text)
    assert (seen.id, seen.state, seen.parent, seen.session) == (ProcessId(42, 987654), "S", 7, 43)


def test_this_process_is_alive_and_a_later_one_with_its_pid_is_not() -> None:
    me = process.myself()
    assert process.alive(me)
    assert not process.alive(replace(me, start=me.start + 1))


def test_a_zombie_is_dead() -> None:
    popen = subprocess.Popen(["true"])
    name = ProcessId(popen.pid, process.identify(popen.pid).start)  # type: ignore[union-attr]
    assert until(lambda: process.stat(popen.pid).state == "Z")  # type: ignore[union-attr]
    assert not process.alive(name)
    popen.wait()
    assert process.identify(popen.pid) is None


def test_a_signal_reaches_its_process_only(child: subprocess.Popen[bytes]) -> None:
    name = process.identify(child.pid)
    assert name is not None
    assert not process.send(replace(name, start=name.start + 1), signal.SIGKILL)
    assert child.poll() is None
    assert process.send(name, signal.SIGKILL)
    assert child.wait(5) == -signal.SIGKILL
    assert not process.send(name, signal.SIGKILL)


def test_the_environment_a_process_was_started_with() -> None:
    env = {"PATH": os.environ["PATH"], "A": "b=c\nd", "EMPTY": ""}
    with subprocess.Popen(["sleep", "60"], env=env) as popen:
        assert until(lambda: process.environ(popen.pid) == env)
        popen.kill()
    assert process.environ(popen.pid) is None


def test_family_holds_children_that_lost_their_parent(child: subprocess.Popen[bytes]) -> None:
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, *SLEEP], start_new_session=True, stdin=subprocess.PIPE
    ) as leader:
        name = process.identify(leader.pid)
        assert name is not None
        assert until(lambda: len(process.family(name)) == 2)
        first, second = process.family(name)
        assert first == name
        leader.communicate()  # the leader ends, its child stays
        assert process.family(name) == (second,)
        assert child.pid not in {entry.pid for entry in process.family(name)}
        process.send(second, signal.SIGKILL)
        assert until(lambda: process.family(name) == ())


def test_a_reused_pid_has_no_family_of_ours(child: subprocess.Popen[bytes]) -> None:
    name = process.identify(child.pid)
    assert name is not None
    assert process.family(name) == (name,)
    assert process.family(replace(name, start=name.start - 1)) == ()


def test_boot_id_is_one_of_this_boot() -> None:
    assert len(process.boot_id()) == 36
    assert process.boot_id() == process.boot_id()


def test_a_long_command_line_is_cut_visibly(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    for length, end in ((120, "a"), (121, "...")):
        (tmp_path / "7" / "cmdline").write_bytes(b"a" * length + b"\0")
        text = process.command(7, tmp_path)
        assert (len(text), text.endswith(end)) == (120, True)
    assert process.command(8, tmp_path) == ""
