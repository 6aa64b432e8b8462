"""An engine in a container, as its supervisor has it: its end, its log, its removal, and cards that stay dirty."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from fake_docker import HANG, FakeDocker, entry, inspected, words
from test_client import DOWN, ID, LAUNCH

from ttstack.cli.live import note_of
from ttstack.host import process
from ttstack.host.types import ProcessId
from ttstack.run import containers as containers_module
from ttstack.run import follow as follow_module
from ttstack.run.adopt import adopt
from ttstack.run.containers import ContainerEngine, ContainerRuntime
from ttstack.run.control import down, look_at
from ttstack.run.errors import RunRefusedError
from ttstack.run.runtime import ContainerId
from ttstack.run.state import RunFolder, State
from ttstack.run.waiting import wait_until

RUNNING = ("^container", 0, inspected(entry()), "")
LOGS = ("^logs", 0, "first\nlast\n", "")
RM = ("^rm", 0, "", "")


def exited(**state: object) -> tuple[str, int, str, str]:
    return ("^container", 0, inspected(entry(state={"Status": "exited", **state})), "")


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
