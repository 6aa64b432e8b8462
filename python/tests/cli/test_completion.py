from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.cli.completion import line_parser, values_of
from ttstack.cli.main import VERBS
from ttstack.cli.parsers import all_parsers, arguments, commands
from ttstack.host.types import ProcessId
from ttstack.run.state import State, run_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

ARMS = Path(__file__).resolve().parents[3] / "arms"
SHIPPED = sorted(path.stem for path in ARMS.glob("*.toml") if path.stem != "models")
TTX = "import sys\nfrom ttstack.cli.main import entry\nsys.argv[0] = 'ttx'\nentry()"
DEADLINE_S = 30

STATE = State(
    run="", arm="left", since="", boot_id="", simulated=True, phase="ready", step="", supervisor=ProcessId(1, 1),
    engine=None, cards=(), host="127.0.0.1", port=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a ttx, two runs, their records, and arms of its own."""
    home = tmp_path_factory.mktemp("home")
    state = home / "state"
    for run, arm, phase in (("20260101T000000-aaaaaa", "over", "stopped"), ("20260102T000000-bbbbbb", "left", "ready")):
        folder = run_folder(state, run)
        folder.path.mkdir(parents=True)
        folder.write(replace(STATE, run=run, arm=arm, phase=phase))  # type: ignore[arg-type]
    (state / "runs" / "20260103T000000-cccccc").mkdir()
    (state / "runs" / "20260103T000000-cccccc" / "state.json").write_text("{")
    lines = [
        '{"schema":1,"kind":"open","run":"20251231T000000-dddddd"}',
        '{"schema":1,"kind":"close"}',
        '"kind":"open" {',
    ]
    (state / "records.jsonl").write_text("\n".join(lines))
    (home / "other.jsonl").write_text(json.dumps({"kind": "open", "run": "elsewhere"}, separators=(",", ":")))
    for cache in ("0123456789abcdef", "jit/prod-ttnn", "no key"):
        (home / "cache" / cache).mkdir(parents=True)
    (home / ".hidden").mkdir()
    own = home / "own"
    own.mkdir()
    (own / "models.toml").write_text("schema = 1\n")
    (own / "mine.toml").write_text("not even TOML")
    (home / "bin").mkdir()
    (home / "bin" / "ttx").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{TTX}" "$@"\n')
    (home / "bin" / "ttx").chmod(0o755)
    return home


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(home),
        "TTX_STATE": str(home / "state"),
        "TTX_ARMS": str(ARMS),
        "TTX_CACHE": str(home / "cache"),
    }


def _tab(home: Path, line: str) -> list[str]:
    """Ask as the shells' scripts do."""
    out = home / "state" / "out"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(out), "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    point = {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = [sys.executable, "-c", TTX]
    done = subprocess.run(command, env=_environment(home) | asked | point, cwd=home, capture_output=True, check=True)
    assert done.stdout == b""
    text = out.read_text()
    return text.split("\013") if text else []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ttx ", list(VERBS)),
        ("ttx a", ["arm", "ab", "adopt"]),
        ("ttx -", ["-h", "--help", "--version", "-v", "--verbose", "--arms"]),
        ("ttx --arms o", ["own/"]),
        ("ttx arm ", ["ls", "show", "check", "render", "compare"]),
        ("ttx arm show ", SHIPPED),
        ("ttx -v arm check prod sim-p", ["sim-pair"]),
        ("ttx --arms own arm show ", ["mine"]),
        ("ttx --arms nowhere arm show ", ["bin/", "cache/", "own/", "state/"]),
        ("ttx run own/", ["own/mine.toml", "own/models.toml"]),
        ("ttx run ./o", ["./own/"]),
        ("ttx run sim --no", ["--no-wait"]),
        ("ttx run sim --suite ", ["smoke", "sweep32k", "infbench", "soak"]),
        ("ttx run sim --suite infbench --set ru", ["runs="]),
        ("ttx bench URL --suite infbench --set runs=", ["runs=5"]),
        ("ttx run sim --wait ", []),
        ("ttx run sim ", []),
        ("ttx ab run si", ["sim", "sim-docker", "sim-pair"]),
        ("ttx ab show ", []),
        ("ttx arm render prod --as d", ["docker"]),
        ("ttx arm compare prod o", ["other.jsonl", "own/"]),
        ("ttx records ls --outcome r", ["refused", "running"]),
        ("ttx records ls --arm tp1-", ["tp1-a", "tp1-b"]),
        ("ttx records show ", ["last", "20251231T000000-dddddd"]),
        ("ttx records show --records other.jsonl e", ["elsewhere"]),
        ("ttx records show --records nowhere ", []),
        ("ttx status 2026010", ["20260101T000000-aaaaaa", "20260102T000000-bbbbbb", "20260103T000000-cccccc"]),
        ("ttx down ", ["20260102T000000-bbbbbb", "left"]),
        ("ttx cache show ", ["0123456789abcdef", "jit/prod-ttnn"]),
        ("ttx completion ", ["bash", "zsh", "fish"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tab(home: Path, line: str, expected: list[str]) -> None:
    assert _tab(home, line) == expected


def test_every_value_has_a_source() -> None:
    for parser in all_parsers().values():
        for each in (parser, *commands(parser).values()):
            for action in arguments(each):
                assert values_of(each.prog, action) or action.nargs == 0 or action.choices


def test_only_the_verb_of_the_line_is_imported() -> None:
    program = f"import sys\nfrom {line_parser.__module__} import *\nline_parser(sys.argv[1])\nprint(*sys.modules)"
    for line, verb in (("ttx ", None), ("ttx slot ", "slot"), ("ttx run s", "run")):
        done = subprocess.run([sys.executable, "-c", program, line], stdout=subprocess.PIPE, check=True, text=True)
        found = done.stdout.split()
        verbs = [name.rpartition(".")[2] for name in found if name.startswith("ttstack.cli.verbs.")]
        assert verbs == ([verb] if verb else [])
        assert not {"rich", "jinja2", "asyncio", "tomlkit", "fastjsonschema", "ttstack.run.flow"} & set(found)


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete "), ("zsh", "#compdef ttx"), ("fish", "complete ")])
def test_the_scripts(shell: str, mark: str, home: Path) -> None:
    script = _script(home, shell)
    assert mark in script
    assert "ttx" in script


def _script(home: Path, shell: str) -> str:
    command = [sys.executable, "-c", TTX, "completion", shell]
    return subprocess.run(command, env=_environment(home), capture_output=True, check=True, text=True).stdout


class Terminal:
    """A shell on a terminal, to type into."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        ours, theirs = pty.openpty()
        self.handle = ours
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str, until: str) -> None:
        """Type something and wait for what it shows."""
        os.write(self.handle, text.encode())
        end = time.monotonic() + DEADLINE_S
        start = len(self.shown)
        while until not in self.shown[start:]:
            assert time.monotonic() < end, f"no {until!r} in {self.shown!r}"
            if select.select([self.handle], [], [], 0.2)[0]:
                self.shown += os.read(self.handle, 65536).decode(errors="replace")

    def close(self) -> None:
        """End the shell."""
        self.process.kill()
        self.process.wait()
        os.close(self.handle)


@pytest.fixture(params=["bash", "zsh", "fish"])
def terminal(request: pytest.FixtureRequest, home: Path) -> Iterator[Terminal]:
    shell = request.param
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    (home / "script").write_text(_script(home, shell))
    options = {"bash": ["--noprofile", "--norc", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}[shell]
    env = {**_environment(home), "TERM": "dumb", "PS1": "> "}
    terminal = Terminal([program, *options], env, home)
    start = {"zsh": "autoload -U compinit && compinit -u -D; ", "bash": "bind 'set bell-style none'; "}.get(shell, "")
    terminal.type(f"{start}source ./script; echo go''ne\r", "gone")
    yield terminal
    terminal.close()


@pytest.mark.host
def test_a_real_shell(terminal: Terminal) -> None:
    terminal.type("ttx arm rend\t", "render ")
    terminal.type("prod-\t", "prefix ")
    terminal.type("--her\t", "--here ")
    terminal.type("--as exec\t", "execstart ")
