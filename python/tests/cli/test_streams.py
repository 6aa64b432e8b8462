"""Streams that are closed, full, narrow in their encoding, or read by nobody."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from ttstack.cli.command import print_table
from ttstack.cli.main import main
from ttstack.cli.streams import terminal_width
from ttstack.errors import Exit
from ttstack.run.link import python_path

ROOT = Path(__file__).resolve().parents[3]
TTX = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"
VERB = """\
import sys, types
from ttstack.cli import main
from ttstack.cli.streams import told

def func(_context, _args):
    with told():
        print("x" * {size})
    return 4

def configure(parser):
    parser.set_defaults(func=func)

sys.modules["ttstack.cli.verbs.status"] = types.SimpleNamespace(EXAMPLES="", configure=configure)
sys.argv = ["ttx", "status"]
main.entry()
"""


def environment(folder: Path) -> dict[str, str]:
    own = {"TTX_STATE": str(folder / "state"), "TTX_ARMS": str(ROOT / "arms"), "PYTHONPATH": python_path()}
    return {**os.environ, "PYTHONUNBUFFERED": "", **own}


def shell(tmp_path: Path, redirects: str, code: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run some code through a shell, for what it can do to streams."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirects}', "sh", sys.executable, "-c", code, *words],
        env={**environment(tmp_path), **env},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("redirects", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_streams_number_goes_to_no_other_file(tmp_path: Path, redirects: str) -> None:
    code = (
        "import os, sys; from ttstack.cli.streams import hold_streams; hold_streams(); "
        "number = os.open('/dev/null', os.O_RDONLY); print('heard'); print('heard', file=sys.stderr); "
        "sys.stdin.read(); sys.stdout.isatty(); open('number', 'w').write(str(number))"
    )
    shell(tmp_path, redirects, code)
    assert int((tmp_path / "number").read_text()) > 2


def test_nothing_for_people_goes_to_stdout_when_stderr_is_closed(tmp_path: Path) -> None:
    done = shell(tmp_path, "2>&-", TTX, "status", "nosuch", "--json")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")


@pytest.mark.parametrize("size", [10, 100_000])  # less and more than what is written at once
def test_a_reader_that_went_away_does_not_change_how_it_ended(tmp_path: Path, size: int) -> None:
    reader, gone = os.pipe()
    os.close(reader)
    env = environment(tmp_path)
    try:
        told = subprocess.run(
            [sys.executable, "-c", VERB.format(size=size)],
            env=env,
            stdout=gone,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
        said = subprocess.run([sys.executable, "-c", TTX, "run", "no"], env=env, stderr=gone, check=False, timeout=60)
    finally:
        os.close(gone)
    assert (told.returncode, told.stderr) == (4, b"")
    assert said.returncode == Exit.USAGE


@pytest.mark.parametrize("at_once", ["", "1"])
def test_a_full_disk_is_one_sentence(tmp_path: Path, at_once: str) -> None:
    done = shell(tmp_path, ">/dev/full", TTX, "arm", "ls", PYTHONUNBUFFERED=at_once)
    assert (done.returncode, done.stderr) == (Exit.FAILED, "ttx: No space left on device\n")


def test_a_name_that_is_too_long_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arm", "show", f"{'y' * 300}.toml"]) != Exit.DONE
    assert capsys.readouterr().err.startswith("ttx: ")


def test_an_encoding_that_lacks_a_character_gets_an_escape(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text((ROOT / "arms/sim.toml").read_text().replace("a simulated engine", "✓ Grüße"))
    whole = shell(tmp_path, "", TTX, "arm", "show", "x.toml", "--json", PYTHONIOENCODING="ascii")
    assert whole.returncode == Exit.DONE
    assert "✓ Grüße" in json.dumps(json.loads(whole.stdout), ensure_ascii=False)
    plain = shell(tmp_path, "", TTX, "arm", "show", "x.toml", PYTHONIOENCODING="ascii")
    assert (plain.returncode, r"\u2713 Gr\xfc\xdfe" in plain.stdout) == (Exit.DONE, True)


def test_a_table_has_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [("x\n\x1b[2Jfree", "y")])
    assert capsys.readouterr().out.splitlines()[1:] == [r"x\n\x1b[2Jfree  y"]


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", terminal)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 67, 0, 0))
        assert terminal_width() == 67
    assert terminal_width() == 0  # closed
    with open(os.devnull, "w", encoding="utf-8") as nothing:  # noqa: PTH123 - as above
        monkeypatch.setattr(sys, "stdout", nothing)
        assert terminal_width() == 0
    monkeypatch.setattr(sys, "stdout", None)
    assert terminal_width() == 0
    os.close(ours)
