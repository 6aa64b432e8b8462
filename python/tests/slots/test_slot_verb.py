"""``ttx slot run``, ``hold`` and ``release``, as processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ttstack.cli.hosts import places_for
from ttstack.host.process import identify, myself
from ttstack.host.types import Card
from ttstack.render.cards import visible_to_process
from ttstack.slots.claim import new_claim
from ttstack.slots.errors import HeldError
from ttstack.slots.giveback import ask_back, has_locked
from ttstack.slots.lock import try_lock
from ttstack.slots.take import Request, acquire, lock_name
from ttstack.slots.view import look

FIRST, SECOND = "0000040511940000", "0000040511940001"
CODE = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"


@dataclass
class Desk:
    """A shell on a simulated host."""

    environ: dict[str, str]
    stderr: str = ""

    def __post_init__(self) -> None:
        self.places = places_for(self.environ, simulated=True)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", CODE, "slot", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
            start_new_session=True,
        )

    def ttx(self, *words: str, code: int = 0) -> str:
        done = self.start(*words)
        out, self.stderr = done.communicate(timeout=60)
        assert done.returncode == code, f"{out}\n{self.stderr}"
        return out

    def states(self) -> list[str]:
        return [view.state for view in look(self.places)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    root = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join([root, *(path for path in sys.path if path)])
    return Desk({**os.environ, "TTX_STATE": str(tmp_path / "state"), "PYTHONPATH": paths})


def test_a_program_gets_cards_by_their_names_and_its_code_is_ours(desk: Desk) -> None:
    show = 'echo "$TT_VISIBLE_DEVICES|$TTX_CARDS|$TTX_SIM_DEV|$*"; exit 7'
    out = desk.ttx("run", "--sim", "--cards", "2", "--", "sh", "-c", show, "sh", "-x", "--", "y", code=7)
    assert out == f"0,1|{FIRST},{SECOND}|{desk.places.roots.dev}/tenstorrent|-x -- y\n"
    assert desk.ttx("run", "--sim", "--ids", "02:00.0", "--", "sh", "-c", "echo $TT_VISIBLE_DEVICES") == "1\n"
    desk.ttx("run", "--sim", "--", "sh", "-c", "kill -KILL $$", code=128 + signal.SIGKILL)
    assert desk.states() == ["free", "free"]
    desk.ttx("run", "--sim", "--ids", "01:00.0,02:00.0", "--no-wait", "--", "true")


def test_a_process_names_real_cards_by_bdf() -> None:
    cards = [Card(f"/dev/tenstorrent/{n}", n, f"0000:0{3 - n}:00.0", "", "", "") for n in (1, 0)]
    assert visible_to_process(cards, simulated=False) == ("0000:02:00.0", "0000:03:00.0")
    assert visible_to_process(cards, simulated=True) == ("1", "0")


def test_what_cannot_be_run_is_told_before_a_card_is_waited_for(desk: Desk, tmp_path: Path) -> None:
    slot = acquire(Request(2, (), 0), desk.places)
    desk.ttx("run", "--sim", "--", "no-such-program", code=127)
    assert "there is no program 'no-such-program'" in desk.stderr
    (tmp_path / "text").write_text("x")
    desk.ttx("run", "--sim", "--", str(tmp_path / "text"), code=126)
    slot.release()
    (tmp_path / "text").chmod(0o755)
    desk.ttx("run", "--sim", "--", str(tmp_path / "text"), code=126)
    assert "cannot run" in desk.stderr
    assert desk.states() == ["free", "free"]
    for bad in (["--cards", "0"], ["--cards", "3"], ["--ids", "zz"], ["--ids", ""], ["--wait", "nan"]):
        desk.ttx("run", "--sim", *bad, "--", "true", code=2)
    desk.ttx("run", "--sim", code=2)
    desk.ttx("hold", "--sim", "--for", "-1", code=2)


def held(desk: Desk, *words: str) -> tuple[subprocess.Popen[str], str]:
    process = desk.start(*words)
    assert process.stdout is not None
    return process, process.stdout.readline()


ASLEEP = "trap 'echo told; exit 5' {}; echo on; while :; do sleep 0.02; done"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1"])
def test_signals_reach_the_program_which_decides(desk: Desk, name: str) -> None:
    process, _ = held(desk, "run", "--sim", "--", "sh", "-c", ASLEEP.format(name))
    assert desk.states() == ["held", "free"]
    process.send_signal(signal.Signals[f"SIG{name}"])
    assert process.communicate(timeout=30)[0] == "told\n"
    assert process.returncode == 5
    assert desk.states() == ["free", "free"]


def test_who_is_refused_is_told_who_since_when_and_what(desk: Desk) -> None:
    process, _ = held(desk, "run", "--sim", "--ids", "01:00.0", "--", "sh", "-c", ASLEEP.format("TERM"))
    desk.ttx("run", "--sim", "--ids", "01:00.0", "--no-wait", "--", "true", code=3)
    said = f"card {FIRST} is held by run slot-{process.pid} (program sh -c "
    assert said in desk.stderr
    assert f"pid {process.pid}) since 2" in desk.stderr
    (first, second) = json.loads(desk.ttx("ls", "--json"))[-2:]
    assert (first["claim"]["kind"], first["owner_lives"], second["state"]) == ("program", True, "free")
    assert desk.ttx("release", f"slot-{process.pid}") == f"given back: {FIRST} (0000:01:00.0)\n"
    assert process.communicate(timeout=30)[0] == "told\n"
    assert desk.ttx("release", "01:00.0") == ""
    assert "is free" in desk.stderr
    desk.ttx("release", f"slot-{process.pid}", code=2)


def test_a_program_keeps_cards_when_it_is_to_inherit_and_only_then(desk: Desk) -> None:
    script = "sleep 60 >&- 2>&- & echo $!; exec sleep 60"
    for more, after in (["--inherit"], "held"), ([], "free"):
        process, told = held(desk, "run", "--sim", *more, "--", "sh", "-c", script)
        heir = identify(int(told))
        assert heir is not None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 128 + signal.SIGTERM
        assert desk.states()[0] == after
        if more:
            assert "its ttx is gone, what it started is not" in desk.ttx("ls")
            desk.ttx("release", "01:00.0", code=3)
        os.kill(heir.pid, signal.SIGKILL)
        for _ in range(500):
            if desk.states()[0] == "free":
                break
            time.sleep(0.01)
        assert desk.states() == ["free", "free"]


def test_a_killed_ttx_leaves_no_slot_behind(desk: Desk) -> None:
    process, _ = held(desk, "hold", "--sim", "--cards", "2")
    assert desk.states() == ["held", "held"]
    process.kill()
    process.communicate(timeout=30)
    assert desk.states() == ["free", "free"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_hold_holds_until_it_is_told(desk: Desk, number: signal.Signals) -> None:
    process, told = held(desk, "hold", "--sim", "--cards", "2")
    assert told == "TT_VISIBLE_DEVICES=0,1\n"
    assert process.stderr is not None
    assert f"ttx slot release slot-{process.pid}" in process.stderr.readline()
    assert desk.states() == ["held", "held"]
    process.send_signal(number)
    process.communicate(timeout=30)
    assert (process.returncode in {0, 130}, desk.states()) == (True, ["free", "free"])


def test_hold_ends_by_itself_and_shows_itself_as_json(desk: Desk) -> None:
    shown = json.loads(desk.ttx("hold", "--sim", "--for", "0.05", "--json"))
    assert shown["cards"] == [FIRST]
    assert shown["environment"]["TTX_CARDS"] == FIRST
    assert desk.states() == ["free", "free"]


def test_who_waits_may_be_interrupted(desk: Desk) -> None:
    slot = acquire(Request(2, (), 0), desk.places)
    process = desk.start("run", "--sim", "--", "true")
    assert process.stderr is not None
    assert "waiting: card" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    slot.release()
    desk.ttx("run", "--sim", "--no-wait", "--", "true")


def test_engines_are_not_asked_back(desk: Desk) -> None:
    slot = acquire(Request(1, (), 0), desk.places)
    slot.write(new_claim("run-1", "prod", myself()))
    for what in ("run-1", "01:00.0"):
        desk.ttx("release", what, code=3)
        assert "ttx down run-1" in desk.stderr
    slot.release()


def test_only_the_process_that_has_the_very_lock_is_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    monkeypatch.setattr("ttstack.slots.giveback.send", lambda *what: sent.append(what))
    slot = acquire(Request(1, (), 0), desk.places)
    with subprocess.Popen(["sleep", "60"]) as innocent:
        named = identify(innocent.pid)
        assert named is not None
        slot.write(new_claim("slot-1", "sh", named, "program"))
        with pytest.raises(HeldError, match="not seen to hold"):
            ask_back(look(desk.places)[:1], desk.places, 0)
        innocent.kill()
    mine = new_claim("slot-1", "sh", myself(), "program")
    slot.write(replace(mine, pid_namespace=mine.pid_namespace + 1))
    with pytest.raises(HeldError, match="another pid namespace"):
        ask_back(look(desk.places)[:1], desk.places, 0)
    assert sent == []
    slot.write(mine)
    with pytest.raises(HeldError, match="has not given the card back"):
        ask_back(look(desk.places)[:1], desk.places, 0)
    assert sent == [(myself(), signal.SIGTERM)]
    (desk.places.locks / lock_name(FIRST)).write_text("")
    with pytest.raises(HeldError, match="left no name"):
        ask_back(look(desk.places)[:1], desk.places, 0)
    slot.release()


def test_an_open_lock_file_is_not_a_locked_one(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_text("")
    with path.open("r+"):
        assert not has_locked(os.getpid(), path)
    handle = try_lock(path)
    assert handle is not None
    assert has_locked(os.getpid(), path)
    os.close(handle)
    assert not has_locked(os.getpid(), path)
    assert not has_locked(1 << 30, path)


def within(desk: Desk, shell: str, *words: str) -> subprocess.Popen[str]:
    """Start ttx from a shell that has set something up before."""
    return subprocess.Popen(
        ["sh", "-c", f'{shell}; exec "$0" "$@"', sys.executable, "-c", CODE, "slot", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=desk.environ,
    )


def test_what_was_ignored_before_is_ignored_still(desk: Desk) -> None:
    process = within(desk, "trap '' HUP", "hold", "--sim")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode in {0, 130}


IGNORING = (
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
)


def test_who_ignores_its_children_loses_no_exit_code(desk: Desk) -> None:
    words = ["slot", "run", "--sim", "--", "sh", "-c", "exit 4"]
    command = [sys.executable, "-c", IGNORING, sys.executable, "-c", CODE, *words]
    assert subprocess.run(command, env=desk.environ, timeout=30, check=False).returncode == 4


def test_a_program_dies_of_a_closed_pipe_as_it_would_alone(desk: Desk) -> None:
    desk.ttx("run", "--sim", "--", "sh", "-c", "kill -PIPE $$; exit 0", code=128 + signal.SIGPIPE)


APART = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: print("got", flush=True))
os.setpgid(0, 0)  # out of the terminal's foreground: what still comes was sent on
print("on", flush=True)
time.sleep(0.4)
print("end", flush=True)
"""


def test_the_keyboards_interrupt_is_not_sent_on_as_it_comes_by_itself(desk: Desk) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        words = ["slot", "run", "--sim", "--", sys.executable, "-c", APART]
        os.execve(sys.executable, [sys.executable, "-c", CODE, *words], desk.environ)  # noqa: S606 - no shell is meant
    said = b""
    try:
        while b"end" not in said:
            said += os.read(terminal, 1000)
            if said.endswith(b"on\r\n"):
                os.write(terminal, b"\x03")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(terminal)  # not before: it would hang up on who still runs
    assert code == 0
    assert b"^C" in said
    assert b"got" not in said
