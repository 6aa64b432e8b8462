from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.host import deadline
from ttstack.host.deadline import Asked, Probe, gather
from ttstack.host.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

SOON, LATE = 0.3, 30.0
PACKAGE = Path(deadline.__file__).resolve().parents[2]


def hang_on(fifo: Path) -> str:
    """Read a pipe that nobody writes: open(2) sleeps until somebody does."""
    return fifo.read_text()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_answers_come_back_by_name_in_order() -> None:
    probes = [Probe("slow", lambda: time.sleep(0.05) or "b", LATE), Probe("quick", lambda: {"a": (1, None)}, LATE)]
    found = gather(probes)
    assert list(found) == ["slow", "quick"]
    assert [outcome.value for outcome in found.values()] == ["b", {"a": (1, None)}]
    assert all(outcome.answered and not outcome.late for outcome in found.values())


def test_a_long_answer_is_read_whole() -> None:
    assert gather([Probe("long", lambda: "x" * 5_000_000, LATE)])["long"].value == "x" * 5_000_000


def test_a_read_that_hangs_is_reported_and_hides_nothing(fifo: Path) -> None:
    found = gather([Probe("hung", lambda: hang_on(fifo), SOON), Probe("fine", lambda: 1, LATE)])
    assert (found["hung"].late, found["hung"].trouble, found["hung"].value) == (True, "did not answer in 0.3 s", None)
    assert found["fine"].value == 1


def test_all_are_asked_at_once(fifo: Path) -> None:
    """Each waits for the other: one after the other neither would end."""
    probes = [Probe("reader", fifo.read_text, LATE), Probe("writer", lambda: fifo.write_text("x"), LATE)]
    assert gather(probes)["reader"].value == "x"


def test_a_stopped_process_is_reported() -> None:
    found = gather([Probe("stopped", lambda: os.kill(os.getpid(), signal.SIGSTOP), SOON)])
    assert found["stopped"].late


def test_one_that_cannot_be_ended_is_left_behind(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in state D: the signal is sent, and nothing comes of it."""
    monkeypatch.setattr(deadline.os, "killpg", lambda *_: None)
    with Asked([Probe("unkillable", lambda: hang_on(fifo), SOON)]) as asked:
        pid = asked._children()[0][0].pid
        assert [outcome.late for outcome in asked.next(LATE)] == [True]
        assert asked.waiting == ()
    os.kill(pid, 0)  # it is still there
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_what_it_started_is_ended_too(tmp_path: Path, fifo: Path) -> None:
    note = tmp_path / "pid"

    def start() -> None:
        child = subprocess.Popen(["sleep", "600"])  # stays in the group
        note.write_text(str(child.pid))
        hang_on(fifo)

    with Asked([Probe("parent", start, LATE)]) as asked:
        while not (note.exists() and note.read_text()):
            assert asked.next(0.01) == []
    stat = Path(f"/proc/{note.read_text()}/stat")
    for _ in range(200):  # init may bury it a moment later
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("the grandchild lives")


def test_a_hung_one_keeps_no_pipe_of_ours(fifo: Path) -> None:
    """`ttx doctor | less` ends when ttx does, although a child of it cannot be ended."""
    script = (
        "import os\nfrom ttstack.host import deadline\n"
        "deadline.os.killpg = lambda *_: None\n"
        "os.dup(1), os.dup2(1, 500)\n"
        f"with deadline.Asked([deadline.Probe('hung', lambda: open({str(fifo)!r}).read(), 0.3)]) as asked:\n"
        "    print(asked._children()[0][0].pid, flush=True)\n"
        "    print(asked.next(30)[0].late)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=PACKAGE) as asker:
        assert asker.stdout
        pid = int(asker.stdout.readline())
        ended = threading.Timer(LATE, os.kill, (pid, signal.SIGKILL))
        ended.start()
        rest = asker.stdout.read()  # until everybody closed it
        in_time = ended.is_alive()
        ended.cancel()
    os.kill(pid, signal.SIGKILL)
    assert (rest, in_time) == ("True\n", True)


@pytest.mark.parametrize(
    ("error", "trouble", "hint"),
    [
        (HostError("cannot read it", hint="mount /proc"), "cannot read it", "mount /proc"),
        (KeyError("x"), "failed: KeyError: 'x'", ""),
        (RecursionError("deep"), "failed: RecursionError: deep", ""),
    ],
)
def test_an_error_is_an_answer(error: Exception, trouble: str, hint: str) -> None:
    def fail() -> None:
        raise error

    found = gather([Probe("bad", fail, LATE)])["bad"]
    assert (found.trouble, found.hint, found.late, found.answered) == (trouble, hint, False, False)


def test_what_cannot_be_sent_is_an_answer_too() -> None:
    assert "pickle" in gather([Probe("bad", lambda: lambda: 1, LATE)])["bad"].trouble


def test_one_that_dies_is_reported() -> None:
    assert gather([Probe("dead", lambda: os.kill(os.getpid(), signal.SIGKILL), LATE)])["dead"].trouble == (
        "ended without an answer"
    )


def test_a_fork_that_is_refused_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(deadline.os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    found = gather([Probe("a", lambda: 1, LATE), Probe("b", lambda: 1, LATE)])
    assert found["b"].trouble == "cannot be asked: Resource temporarily unavailable"
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_who_is_waited_for_is_told(fifo: Path) -> None:
    told: list[Sequence[str]] = []
    gather([Probe("hung", lambda: hang_on(fifo), SOON), Probe("fine", lambda: 1, LATE)], waiting=told.append)
    assert tuple(told[-1]) == ("hung",)


def test_an_interrupt_ends_them(tmp_path: Path, fifo: Path) -> None:
    note = tmp_path / "pid"

    def hang() -> str:
        note.write_text(str(os.getpid()))
        return hang_on(fifo)

    def interrupted() -> None:
        with Asked([Probe("hung", hang, LATE)]) as asked:
            for _ in range(500):
                asked.next(0.01)
                if note.exists() and note.read_text():
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    pid = int(note.read_text())
    for _ in range(500):
        try:
            os.waitpid(pid, os.WNOHANG)
            os.kill(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            return
        time.sleep(0.01)
    pytest.fail("it lives")
