"""ttx top in a terminal of its own, and as it prints."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from top_kit import Server, environ_in, serving, simulated_places, write_run

from ttstack.cli.main import main
from ttstack.errors import Exit
from ttstack.run.link import python_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"
TAKE, GIVE = b"\x1b[?1049h", b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
_SEQUENCE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    simulated_places(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as told:
        yield told


def environment(base: Path, **more: str) -> dict[str, str]:
    environ = {**environ_in(base), "PYTHONPATH": python_path(), **more}
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        if name not in more:
            environ.pop(name, None)
    return environ


@dataclass
class Terminal:
    """A terminal with a program in it, as the program's controlling terminal."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    mode: list[object]
    data: bytes = b""

    def read(self, seconds: float = 0.02) -> None:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            with suppress(OSError):
                self.data += os.read(self.master, 65536)

    def until(self, text: str, *, since: int = 0, rows: int = 24, seconds: float = 20) -> str:
        """Read until a whole screen that was drawn after so many bytes has this text; return that screen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for screen in self.screens(since):
                lines = screen.replace("\r", "").split("\n")
                if text in screen and len(lines) == rows and len(lines[-1]) >= len(lines[0]):
                    return screen
            self.read()
        pytest.fail(f"{text!r} never came: {self.data[-2000:]!r}")

    def screens(self, since: int) -> list[str]:
        """Give what was drawn after so many bytes, screen by screen."""
        drawn = self.data[since:].split(b"\x1b[H")[1:]
        return [_SEQUENCE.sub(b"", each).decode("utf-8", "replace") for each in drawn]

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self, seconds: float = 20) -> int:
        """Wait for the program's end, while reading what it still writes."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        return self.process.wait(1)

    def is_as_before(self) -> bool:
        """Whether the terminal's own screen, its cursor and its mode are back."""
        taken, given = self.data.rfind(TAKE), self.data.rfind(GIVE)
        shown = self.data.rfind(SHOW_CURSOR)
        return 0 <= taken < given and taken < shown and termios.tcgetattr(self.slave) == self.mode


@contextmanager
def terminal(
    base: Path, *words: str, code: str = CODE, size: tuple[int, int] = (120, 24), **more: str
) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    mode = termios.tcgetattr(slave)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    adopt = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    process = subprocess.Popen(
        [sys.executable, "-c", adopt + code, "top", *words],
        stdin=slave, stdout=slave, stderr=slave, env=environment(base, **more), start_new_session=True,
    )  # fmt: skip
    try:
        yield Terminal(process, master, slave, mode)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(10)
        os.close(master)
        os.close(slave)


def test_it_starts_shows_and_q_quits(base: Path, server: Server) -> None:
    write_run(base, server.port)
    with terminal(base, "--every", "0.2", size=(200, 30)) as top:
        shown = top.until("answers", rows=30)
        assert "0000:01:00.0" in shown
        assert "free" in shown
        assert "arm-a" in shown
        assert "model loaded" in shown
        assert "GEN TOK/S" in shown
        assert TAKE in top.data
        assert termios.tcgetattr(top.slave)[3] & termios.ICANON == 0
        top.type(b"q")
        assert top.end() == Exit.DONE
        assert top.is_as_before()


@pytest.mark.parametrize("keys", [b"Q", b"\x03"], ids=["Q", "Ctrl-C"])
def test_other_ways_to_quit_are_no_failure(base: Path, keys: bytes) -> None:
    with terminal(base, "--every", "0.2") as top:
        top.until("nothing runs here")
        top.type(keys)
        assert top.end() == Exit.DONE
        assert top.is_as_before()


def test_other_keys_do_nothing(base: Path) -> None:
    with terminal(base, "--every", "0.2") as top:
        top.until("nothing runs here")
        top.type(b"x\x1b[A")
        time.sleep(0.05)
        top.type(b"\x1bOq")  # the key 1 of a keypad
        since = len(top.data)
        top.until("nothing runs here", since=since)
        assert top.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_the_terminal_is_given_back(base: Path, number: signal.Signals) -> None:
    with terminal(base, "--every", "0.2") as top:
        top.until("nothing runs here")
        top.process.send_signal(number)
        assert top.end() == -number
        assert top.is_as_before()


def test_a_fault_ends_it_and_the_terminal_is_given_back(base: Path) -> None:
    fault = "import ttstack.cli.top_view as view; view.run_cells = None; "
    fault += "import ttstack.run.top.watch as watch; watch.look_at_slots = lambda places: 1 // 0; "
    with terminal(base, "--every", "0.2", code=fault + CODE) as top:
        assert top.end() == 1
        assert top.is_as_before()
        assert b"ZeroDivisionError" in top.data[top.data.rfind(GIVE) :]


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(base: Path) -> None:
    with terminal(base, "--every", "0.2") as top:
        top.until("nothing runs here")
        top.type(b"\x1a")
        pid, status = 0, 0
        for _ in range(500):
            pid, status = os.waitpid(top.process.pid, os.WUNTRACED | os.WNOHANG)
            if pid:
                break
            top.read()
        assert pid
        assert os.WIFSTOPPED(status)
        top.read()
        assert top.is_as_before()
        since = len(top.data)
        top.process.send_signal(signal.SIGCONT)
        top.until("nothing runs here", since=since)
        assert TAKE in top.data[since:]
        top.type(b"q")
        assert top.end() == Exit.DONE
        assert top.is_as_before()


def test_it_follows_the_size_of_the_terminal(base: Path, server: Server) -> None:
    write_run(base, server.port)
    with terminal(base, "--every", "30", size=(60, 24)) as top:  # what is drawn below is not drawn for its time
        top.until("arm-a", seconds=20)
        for columns, rows in ((200, 30), (60, 10), (100, 40)):
            since = len(top.data)
            top.resize(columns, rows)
            shown = top.until("ttx top", since=since, rows=rows)
            lines = shown.replace("\r", "").split("\n")
            assert {len(line) for line in lines} == {columns}
            assert ("GEN TOK/S" in shown) == (columns == 200)


def test_a_terminal_that_has_no_size_is_taken_for_a_usual_one(base: Path) -> None:
    with terminal(base, "--every", "0.2", size=(0, 0)) as top:
        shown = top.until("nothing runs here")
        assert len(shown.replace("\r", "").split("\n")[0]) == 80


def test_a_server_that_hangs_does_not_freeze_the_screen(base: Path, server: Server) -> None:
    write_run(base, server.port)
    server.go.clear()
    with terminal(base, "--every", "0.2") as top:
        top.until("no answer")
        clocks = set()
        for _ in range(40):
            since = len(top.data)
            clocks.add(re.search(r"\d\d:\d\d:\d\d", top.until("no answer", since=since))[0])  # type: ignore[index]
            if len(clocks) > 1:
                break
        assert len(clocks) > 1
        top.type(b"q")
        assert top.end() == Exit.DONE


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_no_colours_where_none_are_wanted(base: Path, no_colour: str) -> None:
    with terminal(base, "--every", "0.2", NO_COLOR=no_colour) as top:
        top.until("free")
        assert (re.search(rb"\x1b\[(?:\d+;)*3[0-7]", top.data) is None) == bool(no_colour)


def test_a_terminal_that_cannot_have_a_screen_gets_tables(base: Path) -> None:
    with terminal(base, "--every", "0.2", TERM="dumb") as top:
        assert top.end() == Exit.DONE
        assert b"\x1b" not in top.data
        assert b"0000:01:00.0" in top.data


@pytest.fixture
def here(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have ``main`` of this process look at the host of ``base``."""
    for name, value in environ_in(base).items():
        monkeypatch.setenv(name, value)
    return base


@pytest.mark.parametrize("words", [(), ("--once",)])
def test_not_on_a_terminal_it_prints_one_look(
    here: Path, server: Server, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(here, server.port)
    assert main(["top", "--every", "0.2", *words]) == Exit.DONE
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    cards, runs = out.split("\n\n")
    assert cards.split()[:2] == ["CARD", "BDF"]
    assert len(cards.splitlines()) == 3
    head, row = runs.splitlines()
    assert head.endswith("NOTE OR LAST LINE")
    assert "answers" in row
    assert row.endswith("model loaded")
    assert float(re.split(r" {2,}", row)[3]) > 0


def test_one_document_or_so_many_lines_for_programs(
    here: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(here, server.port)
    assert main(["top", "--json", "--every", "0.2"]) == Exit.DONE
    one = json.loads(capsys.readouterr().out)
    assert one["runs"][0]["server"] == "answered"
    assert one["runs"][0]["generation_tokens_per_s"] > 0
    assert main(["top", "--json", "--every", "0.2", "--count", "3"]) == Exit.DONE
    looks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(looks) == 3
    counts = [look["runs"][0]["generation_tokens"] for look in looks]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert [card["slot"]["state"] for card in looks[0]["cards"]] == ["free", "free"]


@pytest.mark.usefixtures("here")
def test_nothing_here_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--every", "0.1", "--count", "2"]) == Exit.DONE
    assert capsys.readouterr().out.count("nothing runs here") == 2


def test_what_prints_is_interrupted_as_any_verb(base: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE, "top", "--json", "--count", "1000", "--every", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(base), start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == Exit.INTERRUPTED
        assert b"interrupted" in err


def test_a_reader_that_went_away_ends_it(base: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE, "top", "--json", "--count", "1000", "--every", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(base), start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == Exit.DONE
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "words",
    [
        *(("--every", value) for value in ("0", "-1", "nan", "inf", "x")),
        *(("--count", value) for value in ("0", "-1", "two", "٣")),
        ("--once", "--count", "2"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", *words]) == Exit.USAGE
    assert "\n  " in capsys.readouterr().err
