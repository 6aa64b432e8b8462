"""A program that stands in for docker: it writes down how it was called and answers as it is told.

Its folder holds ``calls`` (one JSON list of words a line) and ``answers.json``: a list of [pattern, exit code, stdout,
stderr]. The first pattern, a regular expression, that the call's words match counts; a call that none matches is a
fault of the test.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HANG = -1
"""As an exit code: it does not end."""

SCRIPT = """\
#!{python}
import json, os, re, sys, time
words = sys.argv[1:]
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(words) + "\\n")
for pattern, code, out, err in json.load(open({answers!r})):
    if re.search(pattern, " ".join(words)):
        sys.stdout.write(out)
        sys.stderr.write(err)
        if code == {hang}:
            time.sleep(600)
        sys.exit(code)
sys.exit("no answer to " + " ".join(words))
"""

Reply = tuple[str, int, str, str]


class FakeDocker:
    """The program ``docker`` (or another name) in a folder that is to be put on PATH."""

    def __init__(self, folder: Path, name: str = "docker") -> None:
        self.bin = folder / "bin"
        self.bin.mkdir(exist_ok=True)
        self._calls, self._answers = folder / f"{name}.calls", folder / f"{name}.json"
        program = self.bin / name
        script = SCRIPT.format(python=sys.executable, calls=str(self._calls), answers=str(self._answers), hang=HANG)
        program.write_text(script)
        program.chmod(0o755)
        self.answer()

    def answer(self, *answers: Reply) -> None:
        """Say what is answered from now on."""
        beside = self._answers.with_suffix(".new")
        beside.write_text(json.dumps(answers))
        beside.replace(self._answers)

    def calls(self) -> list[list[str]]:
        """Give all calls so far."""
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    def called(self, verb: str) -> list[list[str]]:
        """Give the calls that begin with a word."""
        return [call for call in self.calls() if call[0] == verb]

    def path(self, rest: str = "") -> str:
        """Make a PATH that finds it first."""
        return os.pathsep.join([str(self.bin), *([rest] if rest else [])])


def entry(container: str = "c" * 64, *, name: str = "ttx-quick", **more: object) -> dict[str, object]:
    """Make what ``inspect`` says of a container. ``state`` and ``config`` change parts of it."""
    state = {"Status": "running", "Pid": 0, "ExitCode": 0, "OOMKilled": False, "Error": ""}
    config: dict[str, object] = {"Env": ["A=1"], "Labels": {}, "StopTimeout": 3}
    state |= more.pop("state", {})  # type: ignore[arg-type]
    config |= more.pop("config", {})  # type: ignore[arg-type]
    return {"Id": container, "Name": f"/{name}", "State": state, "Config": config, "Image": "sha256:feed", **more}


def inspected(*entries: dict[str, object]) -> str:
    """Make the output of ``inspect``."""
    return json.dumps(list(entries))


def words(calls: Sequence[Sequence[str]]) -> list[str]:
    """Write calls as lines."""
    return [" ".join(call) for call in calls]
