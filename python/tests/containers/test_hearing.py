"""An engine that cannot hear SIGTERM yet: the first process of a container is deaf to what it has no handler for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from fake_docker import HANG, FakeDocker, entry, inspected
from test_client import ID, LAUNCH

from ttstack.host import process
from ttstack.host.types import ProcessId
from ttstack.run import client as client_module
from ttstack.run import containers as containers_module
from ttstack.run.containers import ContainerEngine, ContainerRuntime
from ttstack.run.hearing import hears, wait_until_it_hears
from ttstack.run.runtime import ContainerId
from ttstack.run.state import RunFolder, run_folder
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Deaf until a line comes: it has no handler then, as an engine that imports its modules.
LATE = "import signal, sys, time; input(); signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(600)"


class Late:
    """A process that hears SIGTERM from when it is told to."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen([sys.executable, "-c", LATE], stdin=subprocess.PIPE)
        name = process.identify(self._popen.pid)
        assert name is not None
        self.name = name

    def listen(self) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(b"\n")
        self._popen.stdin.flush()
        assert wait_until(lambda: hears(self.name, signal.SIGTERM), 20)

    def end(self) -> None:
        self._popen.kill()
        self._popen.communicate()


@pytest.fixture
def late() -> Iterator[Late]:
    made = Late()
    yield made
    made.end()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    made = FakeDocker(tmp_path)
    monkeypatch.setenv("PATH", made.path())
    return made


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = run_folder(tmp_path / "state", "R")
    made.path.mkdir(parents=True)
    return made


def _start(fake: FakeDocker, folder: RunFolder, late: Late, grace_s: int) -> ContainerEngine:
    running = inspected(entry(state={"Pid": late.name.pid}, config={"StopTimeout": grace_s}))
    fake.answer(("^run", 0, ID, ""), ("^container", 0, running, ""), ("^(logs|wait|stop)", HANG, "", ""))
    return ContainerRuntime("docker").start(LAUNCH, folder, {}, ())


def _close(engine: ContainerEngine) -> None:
    engine._log._close()
    engine._reap()


def test_a_stop_waits_until_it_is_heard_and_leaves_the_rest_of_the_grace(
    fake: FakeDocker, folder: RunFolder, late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = _start(fake, folder, late, 60)
    engine.ask_to_stop()
    assert not wait_until(engine.ended, 0.5)
    assert fake.called("stop") == []
    late.listen()
    now = containers_module.time.monotonic
    monkeypatch.setattr(containers_module.time, "monotonic", lambda: now() + 20)
    assert wait_until(lambda: engine.ended() or fake.called("stop") != [], 20)
    (stop,) = fake.called("stop")
    assert int(stop[2]) in range(35, 41)
    _close(engine)


def test_one_that_never_hears_is_killed_when_its_grace_is_over(fake: FakeDocker, folder: RunFolder, late: Late) -> None:
    engine = _start(fake, folder, late, 1)
    engine.ask_to_stop()
    assert not engine.ended()
    assert fake.called("stop") == []
    assert wait_until(lambda: engine.ended() or fake.called("stop") != [], 20)
    assert fake.called("stop") == [["stop", "-t", "0", ID]]
    _close(engine)


def test_one_that_hears_has_its_whole_grace(fake: FakeDocker, folder: RunFolder, late: Late) -> None:
    late.listen()
    engine = _start(fake, folder, late, 60)
    engine.ask_to_stop()
    assert wait_until(lambda: fake.called("stop") != [], 20)
    assert fake.called("stop") == [["stop", "-t", "60", ID]]
    _close(engine)


def test_without_a_supervisor_a_stop_waits_as_well(fake: FakeDocker, late: Late) -> None:
    running = inspected(entry(state={"Pid": late.name.pid}, config={"StopTimeout": 1}))
    fake.answer(("^container", 0, running, ""), ("^(stop|wait)", 0, "", ""))
    ContainerRuntime("docker").stop([ContainerId(ID)], signal.SIGTERM)
    assert fake.called("stop") == [["stop", "-t", "0", ID]]
    late.listen()
    assert wait_until_it_hears(late.name, signal.SIGTERM, 60) == 60


def _status(folder: Path, caught: int, blocked: int = 0) -> ProcessId:
    place = folder / "7"
    place.mkdir(exist_ok=True)
    (place / "status").write_text(f"Name:\tx\nSigBlk:\t{blocked:016x}\nSigIgn:\t{0:016x}\nSigCgt:\t{caught:016x}\n")
    (place / "stat").write_text("7 (x) S 1 7 7" + " 0" * 45 + "\n")
    return ProcessId(7, 0)


def test_what_hears(tmp_path: Path) -> None:
    term, usr1 = 1 << 14, 1 << 9
    assert not hears(_status(tmp_path, 2), signal.SIGTERM, tmp_path)
    assert hears(_status(tmp_path, term), signal.SIGTERM, tmp_path)
    assert not hears(_status(tmp_path, term), signal.SIGUSR1, tmp_path)
    assert hears(_status(tmp_path, usr1), signal.SIGUSR1, tmp_path)
    assert hears(_status(tmp_path, 0, blocked=term), signal.SIGTERM, tmp_path)  # docker-init takes it by sigwait


def test_what_cannot_be_learned_is_taken_to_hear(tmp_path: Path) -> None:
    assert hears(None, signal.SIGTERM)
    assert hears(ProcessId(8, 0), signal.SIGTERM, tmp_path)
    _status(tmp_path, 0)
    assert hears(ProcessId(7, 99), signal.SIGTERM, tmp_path)  # the number is another's by now
    assert not hears(process.identify(os.getpid()), signal.SIGUSR2)


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (None, signal.SIGTERM),
        ("", signal.SIGTERM),
        ("SIGINT", signal.SIGINT),
        ("quit", signal.SIGQUIT),
        (15, signal.SIGTERM),
        ("2", signal.SIGINT),
        ("SIGODD", signal.SIGTERM),
        (0, signal.SIGTERM),
    ],
)
def test_the_images_stop_signal_is_read(told: object, meant: signal.Signals) -> None:
    assert client_module._seen(entry(config={"StopSignal": told})).stop_signal == meant
