from __future__ import annotations

import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.cli.command import Context
from ttstack.cli.main import VERBS, main
from ttstack.cli.starting import prepare
from ttstack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"argcomplete", "argparse", "asyncio", "fastjsonschema", "jinja2", "rich", "tomlkit", "ttstack.run.flow"}


def _imported(code: str) -> set[str]:
    """Run some code in an interpreter of its own; name what it imported."""
    program = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_version_needs_nothing() -> None:
    found = _imported('from ttstack.cli.main import main\nmain(["--version"])')
    assert not found & HEAVY


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_imports_nothing_heavy_before_it_is_needed(verb: str) -> None:
    found = _imported(f"import ttstack.cli.verbs.{verb}")
    assert not found & (HEAVY - {"argparse"})


@pytest.mark.parametrize(("verbose", "lines"), [(True, 1), (False, 0)])
def test_verbose_echoes_the_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, verbose: bool, lines: int
) -> None:
    monkeypatch.setenv("TTX_STATE", str(tmp_path))
    args = Namespace(arm="sim", wait=0.0, no_wait=True)
    _, _, options = prepare(Context(verbose=verbose, arms=ROOT / "arms"), args, "run")
    heard = capsys.readouterr().err.splitlines()
    assert len(heard) == lines
    for line in heard:
        words = shlex.split(line)
        assert words[0] == "$"
        assert options.engine_command is not None
        assert words[1:5] == [*options.engine_command, "serve"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], "did you mean: ttx run"),
        (["--arm", "x", "run"], "see: ttx --help"),
        (["-v"], "see: ttx --help"),
        (["--json", "run"], "a verb's own options stand after it"),
        (["--arms"], "--arms needs a folder"),
        (["run"], "`ttx run` needs ARM\n  usage: ttx run"),
        (["arm"], "COMMAND is one of ls, show, check, render, compare\n"),
        (["arm", "lst"], "not 'lst'\n  did you mean: ls"),
        (["arm", "new"], "not 'new'\n  see: ttx arm --help"),
        (["arm", "ls", "--jsn"], "`ttx arm ls` has no option '--jsn'\n  did you mean: --json"),
        (["arm", "ls", "-x"], "`ttx arm ls` has no option '-x'\n  see: ttx arm ls --help"),
        (["arm", "ls", "sim"], "'sim' is one argument too many\n  usage: ttx arm ls"),
        (["arm", "render", "sim", "--as", "dokcer"], "--as of `ttx arm render` is one of docker, "),
        (["run", "sim", "--wait", "soon"], "ttx: --wait: 'soon' is no number of seconds\n"),
        (["run", "sim", "--wait", "3", "--no-wait"], "--no-wait: not allowed with argument --wait\n"),
    ],
)
def test_a_wrong_start_says_the_way_out(words: Sequence[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == Exit.USAGE
    heard = capsys.readouterr()
    assert hint in heard.err
    assert heard.err.startswith("ttx: ")
    assert heard.out == ""


def test_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for columns, there, width in (("60", 90, 60), ("", 70, 70), ("0", 70, 70), ("x", 0, 80)):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setattr("ttstack.cli.parser.terminal_width", lambda there=there: there)
        with pytest.raises(SystemExit):
            main(["cache", "gc", "--help"])
        # Examples and the description keep their lines.
        lines = capsys.readouterr().out.split("options:")[1].split("examples:")[0].splitlines()
        assert width - 12 < max(map(len, lines)) <= width - 2
