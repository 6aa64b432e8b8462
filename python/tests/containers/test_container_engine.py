"""An engine in a container, as its supervisor has it: its end, its log, its removal, and cards that stay dirty."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from fake_docker import HANG, FakeDocker, entry, inspected, words
from test_client import DOWN, ID, LAUNCH

from ttstack.cli.live import note_of
from ttstack.host import process
from ttstack.host.types import Places, ProcessId
from ttstack.run import containers as containers_module
from ttstack.run import follow as follow_module
from ttstack.run import supervisor as supervisor_module
from ttstack.run.adopt import adopt
from ttstack.run.client import Client
from ttstack.run.containers import ContainerEngine, ContainerRuntime
from ttstack.run.control import down, look_at
from ttstack.run.ending import Ending
from ttstack.run.errors import RunRefusedError
from ttstack.run.follow import LogCopy
from ttstack.run.link import Orders
from ttstack.run.minding import BuildMinded
from ttstack.run.plan import Plan
from ttstack.run.runtime import ContainerId
from ttstack.run.state import RunFolder, State, run_folder
from ttstack.run.waiting import wait_until
from ttstack.sim.host import make_host
from ttstack.slots.take import Request, acquire
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNNING = ("^container", 0, inspected(entry()), "")
LOGS = ("^logs", 0, "first\nlast\n", "")
RM = ("^rm", 0, "", "")


def exited(**state: object) -> tuple[str, int, str, str]:
    return ("^container", 0, inspected(entry(state={"Status": "exited", **state})), "")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    made = FakeDocker(tmp_path)
    monkeypatch.setenv("PATH", made.path())
    for module in (containers_module, follow_module):
        monkeypatch.setattr(module, "_AGAIN_S", 0.0)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = run_folder(tmp_path / "state", "R")
    made.path.mkdir(parents=True)
    return made


def start(folder: RunFolder) -> ContainerEngine:
    return ContainerRuntime("docker").start(LAUNCH, folder, {}, ())


def test_it_is_started_by_its_command_and_known_by_its_id(fake: FakeDocker, folder: RunFolder) -> None:
    fake.answer(("^run", 0, f"{ID}\n", ""), exited(), LOGS, ("^wait", 0, "0\n", ""), RM)
    engine = start(folder)
    assert engine.container == ID
    (run,) = fake.called("run")
    assert run[:4] == ["run", "--detach", "--name", "ttx-quick"]
    assert "ttstack.run=R" in run
    assert wait_until(engine.clear, 20)
    assert folder.log.read_text() == "first\nlast\n"
    later = words(fake.calls())
    assert {f"logs --follow {ID}", f"wait {ID}", f"rm {ID}"} <= set(later)
    assert not [call for call in later if "ttx-quick" in call and not call.startswith("run ")]


@pytest.mark.parametrize(
    ("state", "code", "note"),
    [
        ({"ExitCode": 0}, 0, ""),
        ({"ExitCode": 137}, -signal.SIGKILL, ""),
        ({"ExitCode": 137, "OOMKilled": True}, -signal.SIGKILL, "OOMKilled"),
    ],
)
def test_its_end_is_told(fake: FakeDocker, folder: RunFolder, state: dict[str, object], code: int, note: str) -> None:
    fake.answer(("^run", 0, ID, ""), RUNNING, LOGS, ("^wait", 0, "", ""), RM)
    engine = start(folder)
    assert not engine.ended()
    assert engine.exit_code() is None
    fake.answer(exited(**state), LOGS, ("^wait", 0, "", ""), RM)
    assert wait_until(engine.ended, 20)
    assert engine.exit_code() == code
    assert note in engine.note()
    assert fake.called("rm") == []
    assert engine.clear()


def test_a_container_that_somebody_removed_is_over(fake: FakeDocker, folder: RunFolder) -> None:
    fake.answer(("^run", 0, ID, ""), RUNNING, LOGS, ("^wait", 1, "", ""))
    engine = start(folder)
    fake.answer(("^container", 1, "[]", f"Error: No such container: {ID}\n"), LOGS, ("^wait", 1, "", ""))
    assert wait_until(engine.ended, 20)
    assert engine.exit_code() is None
    assert "removed by somebody" in engine.note()
    assert engine.clear()


def test_a_daemon_that_is_away_is_no_end(fake: FakeDocker, folder: RunFolder) -> None:
    fake.answer(("^run", 0, ID, ""), RUNNING, LOGS, ("^wait", 1, "", ""))
    engine = start(folder)
    fake.answer((".", 1, "", DOWN))
    assert not wait_until(engine.ended, 0.5)
    waits = len(fake.called("wait"))
    fake.answer(RUNNING, LOGS, ("^wait", 1, "", ""))
    assert wait_until(lambda: engine.ended() or len(fake.called("wait")) > waits, 20)
    assert not engine.ended()


def test_a_process_that_is_gone_is_an_end_when_no_daemon_says_so_for_long(
    fake: FakeDocker, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers_module, "_AWAY_S", 0.2)
    monkeypatch.setattr(follow_module, "_LAST_S", 0.2)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    fake.answer(("^run", 0, ID, ""), ("^container", 0, inspected(entry(state={"Pid": child.pid})), ""), LOGS)
    engine = start(folder)
    assert engine.leader == process.identify(child.pid)
    fake.answer((".", 1, "", DOWN))
    assert not wait_until(engine.ended, 0.5)
    child.kill()
    child.wait()
    assert wait_until(engine.ended, 20)
    assert "does not answer" in engine.note()
    assert not engine.clear()  # it may still be there


def test_a_removal_and_a_stop_that_fail_are_tried_again(fake: FakeDocker, folder: RunFolder) -> None:
    fake.answer(("^run", 0, ID, ""), RUNNING, LOGS, ("^wait", 0, "", ""), ("^stop", 1, "", ""))
    engine = start(folder)
    engine.ask_to_stop()
    assert wait_until(lambda: engine.ended() or len(fake.called("stop")) > 2, 20)
    assert fake.called("stop")[0] == ["stop", "-t", "3", ID]
    fake.answer(exited(), LOGS, ("^wait", 0, "", ""), ("^rm", 1, "", "device or resource busy"))
    assert wait_until(engine.ended, 20)
    assert not engine.clear()
    assert not engine.clear()
    fake.answer(RM)
    assert engine.clear()
    assert len(fake.called("rm")) == 3


def test_a_stop_that_goes_on_is_not_asked_for_twice(fake: FakeDocker, folder: RunFolder) -> None:
    fake.answer(("^run", 0, ID, ""), RUNNING, ("^(logs|wait|stop)", HANG, "", ""))
    engine = start(folder)
    engine.ask_to_stop()
    assert wait_until(lambda: len(fake.called("stop")) == 1, 20)
    assert not wait_until(engine.ended, 0.5)
    assert len(fake.called("stop")) == 1
    engine._log._close()
    engine._reap()


def test_a_log_that_ended_while_the_daemon_was_away_is_copied_again(fake: FakeDocker, folder: RunFolder) -> None:
    fake.answer(("^run", 0, ID, ""), RUNNING, ("^logs", 0, "first\n", ""), ("^wait", 1, "", ""))
    engine = start(folder)
    engine._log._next = float("inf")  # it is not yet time to try again
    assert wait_until(lambda: folder.log.read_text() == "first\n", 20)
    fake.answer((".", 1, "", DOWN))
    assert not wait_until(engine.ended, 0.5)
    engine._log._next = 0
    fake.answer(exited(), LOGS, RM)
    assert wait_until(engine.ended, 20)
    assert folder.log.read_text() == "first\nlast\n"


def test_one_is_adopted_only_when_it_is_the_only_one(fake: FakeDocker, folder: RunFolder) -> None:
    from ttstack.run.errors import RunError  # noqa: PLC0415

    class Named:
        run = "R"

    for listed in ("", f"{ID}\n{'d' * 64}\n"):
        fake.answer(("^ps", 0, listed, ""), RUNNING)
        with pytest.raises(RunError, match="not one"):
            ContainerRuntime("docker").adopt(Named(), folder)  # type: ignore[arg-type]
    folder.log.write_text("fir")
    fake.answer(("^ps", 0, ID, ""), exited(), LOGS, ("^wait", 0, "", ""), RM)
    engine = ContainerRuntime("docker").adopt(Named(), folder)  # type: ignore[arg-type]
    assert wait_until(engine.clear, 20)
    assert folder.log.read_text() == "first\nlast\n"


def test_a_run_whose_container_cannot_be_looked_for_is_shown(fake: FakeDocker, folder: RunFolder) -> None:
    dead = ProcessId(1, 1)
    state = State(
        run="R",
        arm="quick",
        since="2026-01-31T23:59:59Z",
        boot_id=process.boot_id(),
        simulated=True,
        phase="ready",
        step="ready",
        supervisor=dead,
        engine=None,
        cards=(),
        host="127.0.0.1",
        port=1,
        runtime="docker",
        container=ID,
    )
    for boot in (state.boot_id, "another boot"):  # a container outlives a reboot
        folder.write(replace(state, boot_id=boot))
        fake.answer((".", 1, "", DOWN))
        found = look_at(folder)
        assert found is not None
        assert (found.status, found.live) == ("orphaned", False)
        assert "daemon does not run" in found.trouble
        assert "daemon does not run" in note_of(found)
        with pytest.raises(RunRefusedError, match="daemon does not run"):
            adopt(found, time.sleep)
        with pytest.raises(RunRefusedError, match="daemon does not run"):
            down(found, kill=False, tell=lambda _: None)
        fake.answer(("^ps", 0, ID, ""))
        found = look_at(folder)
        assert found is not None
        assert (found.status, found.engine) == ("orphaned", (ContainerId(ID),))


def printing(text: str, code: int, hang: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - a test's own
    nap = "import time; time.sleep(600)" if hang else ""
    return [
        sys.executable,
        "-c",
        f"import sys; sys.stdout.write({text!r}); sys.stdout.flush(); {nap}\nsys.exit({code})",
    ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "_AGAIN_S", 0.0)


def _until_it_has(copy: LogCopy, log: Path, text: str) -> None:
    def has() -> bool:
        copy.keep_up()
        return log.exists() and log.read_text() == text

    assert wait_until(has, 20), log.read_text()


@pytest.mark.usefixtures("quick")
def test_a_copy_that_breaks_off_goes_on_without_a_gap_or_a_line_twice(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    copy = LogCopy(printing("one\ntw", 1), log, fresh=True)
    assert wait_until(lambda: log.read_text() == "one\ntw", 20)
    copy._argv = printing("one\ntwo\nthree\n", 0)
    _until_it_has(copy, log, "one\ntwo\nthree\n")
    assert wait_until(copy.finished, 20)
    assert log.read_text() == "one\ntwo\nthree\n"
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.usefixtures("quick")
def test_an_end_that_no_daemon_confirms_is_copied_once_more(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    copy = LogCopy(printing("one\n", 0), log, fresh=True)
    assert wait_until(lambda: copy._child is not None and copy._child.poll() == 0, 20)
    copy.doubt()
    copy._argv = printing("one\ntwo\n", 0)
    assert wait_until(copy.finished, 20)
    assert log.read_text() == "one\ntwo\n"


@pytest.mark.usefixtures("quick")
def test_a_beginning_that_was_rotated_away_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("one\ntwo\nthree\n")
    copy = LogCopy(printing("four\n", 0), log, fresh=False)
    assert wait_until(copy.finished, 20)
    text = log.read_text()
    assert text.startswith("one\ntwo\nthree\n")
    assert text.endswith("\nfour\n")


def test_a_copy_that_does_not_end_is_left_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "_LAST_S", 0.2)
    log = tmp_path / "engine.log"
    copy = LogCopy(printing("one\n", 0, hang=True), log, fresh=True)
    child = copy._child
    assert child is not None
    assert wait_until(lambda: log.read_text() == "one\n", 20)
    assert not copy.finished()
    assert wait_until(copy.finished, 20)
    assert child.poll() is not None


class Stuck:
    """An engine that does not end before it is told to."""

    container, margin_s, leader = ID, 0.0, None

    def __init__(self) -> None:
        self.asked, self.over = 0, False
        self.heard: Callable[[], None] = lambda: None

    def ended(self) -> bool:
        return self.over

    def exit_code(self) -> int | None:
        return None

    def note(self) -> str:
        return ""

    def ask_to_stop(self) -> None:
        self.asked += 1

    def clear(self) -> bool:
        self.heard()
        return self.over


def test_cards_of_a_container_that_does_not_end_stay_dirty_until_it_does(tmp_path: Path, folder: RunFolder) -> None:
    roots = make_host(tmp_path / "tree", cards=1)
    places = Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)
    slot = acquire(Request(1, (), 0), places)
    launch = replace(LAUNCH, stop_grace_s=0, cache_dir=str(tmp_path))
    plan = Plan("R", "quick", launch, {}, 60, slot.cards, places.locks, None, simulated=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        supervisor = supervisor_module.Supervisor(folder, Orders(theirs), plan, slot, BuildMinded(plan, None))
        engine = Stuck()
        supervisor.engine = engine
        supervisor._stop(engine, Ending("boot_timeout", "it was not ready"))
        state = folder.read()
        assert state is not None
        assert (state.phase, state.reason) == ("dirty", "stop_failed")
        assert "it was not ready" in state.text
        (view,) = look(places)
        assert (view.state, engine.asked) == ("dirty", 1)
        looked: list[str] = []

        def heard() -> None:
            looked.append(look(places)[0].state)
            engine.over = len(looked) > 1

        engine.heard = heard
        supervisor.terminated = True  # `ttx down` asks once more
        begun = time.monotonic()
        supervisor.hold()
        assert looked == ["dirty", "dirty"]
        assert engine.asked == 2
        assert time.monotonic() - begun < 30
    last = folder.read()
    assert last is not None
    assert (last.phase, last.reason) == ("stopped", "stop_failed")
    assert look(places)[0].state == "free"


def test_what_cannot_be_learned_of_a_failed_start_keeps_the_cards(
    tmp_path: Path, folder: RunFolder, fake: FakeDocker
) -> None:
    roots = make_host(tmp_path / "tree", cards=1)
    places = Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)
    for run_error, phase in ((DOWN, "stopped"), ("docker: odd\n", "dirty")):
        slot = acquire(Request(1, (), 0), places)
        plan = Plan("R", "quick", LAUNCH, {}, 60, slot.cards, places.locks, None, simulated=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = supervisor_module.Supervisor(folder, Orders(theirs), plan, slot, BuildMinded(plan, None))
        fake.answer(("^run", 125, "", run_error), ("^ps", 1, "", "odd\n"))
        supervisor.supervise()
        ours.close()
        state = folder.read()
        assert state is not None
        assert state.phase == phase
    assert slot.released is False
    assert look(places)[0].state == "dirty"
    fake.answer(("^ps", 0, "", ""))
    supervisor.hold()
    assert look(places)[0].state == "free"
    assert Client("docker").of_run("R") == ()
