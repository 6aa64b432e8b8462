"""A host whose cards are stand-in device nodes, with arms that run the simulated engine in real containers.

As a program, ``containers_kit.py BASE VERB ARM WAIT_S`` runs an arm there as ttx does, and prints how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from quick_arm import write_arm
from stand_in_nodes import ALWAYS_THERE

from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.host import process
from ttstack.host.types import Places
from ttstack.run.control import LiveRun, look_at
from ttstack.run.flow import Result, execute
from ttstack.run.journal import store_of
from ttstack.run.link import python_path
from ttstack.run.options import Options
from ttstack.run.state import run_folder, run_folders
from ttstack.sim.host import make_host
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.records.log import RunRecord

FIRST = 'ids = ["0000:01:00.0"]'

SECOND = 'ids = ["0000:02:00.0"]'


class Silent:
    """Hears everything and says nothing."""

    def begin(self, phase: str) -> None:
        """Hear."""

    def detail(self, text: str) -> None:
        """Hear."""

    def check(self, name: str, *, ok: bool | None, detail: str = "") -> None:
        """Hear."""

    def end(self, phase: str, *, ok: bool, seconds: float) -> None:
        """Hear."""

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """Hear."""


def docker(*words: str, check: bool = True, program: str = "docker") -> str:
    """Call docker, or podman; return what it printed."""
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, check=False)
    assert not check or done.returncode == 0, f"{program} {' '.join(words)}: {done.stderr}"
    return done.stdout


@dataclass
class Host:
    """A host in a folder of its own. ``numbers``: major and minor of its cards' nodes."""

    base: Path
    runtime: str = "docker"
    numbers: Sequence[Sequence[int]] = ALWAYS_THERE

    @property
    def places(self) -> Places:
        """Where its things are; its cards are no simulated ones to ttx."""
        roots = make_host(self.base / "tree", cards=len(self.numbers))
        return Places(self.base / "state", self.base / "locks", self.base / "cache", roots, simulated=False)

    def make_nodes(self) -> None:
        """Put device nodes in the place of the simulated host's files, and keep for ``find_host`` what it is."""
        for number, (major, minor) in enumerate(self.numbers):
            node = self.places.roots.dev / "tenstorrent" / str(number)
            node.unlink()
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        (self.base / "host.json").write_text(json.dumps([self.runtime, self.numbers]))

    def arm(self, name: str = "quick", *faults: str, **more: object) -> Path:
        """Write an arm's file."""
        given = {"runtime": self.runtime, "boot_timeout_s": 60, "stop_grace_s": 10, **more}
        return write_arm(self.base, name, *faults, **given)  # type: ignore[arg-type]

    def execute(self, arm: Path, verb: Literal["run", "up"] = "run", **options: object) -> Result:
        """Run an arm in this process."""
        asked = load(str(arm), find_shelf(self.base / "arms", {}, self.base))
        chosen = Options(verb=verb, legacy=self.base / "ttlock", **options)  # type: ignore[arg-type]
        return execute(asked, self.places, chosen, Silent())

    def start(self, verb: str, arm: Path, wait_s: float = 0) -> subprocess.Popen[str]:
        """Run an arm in a process of its own."""
        words = [sys.executable, __file__, str(self.base), verb, str(arm), str(wait_s)]
        return self._popen(words)

    def ttx(self, *words: str, code: int = 0) -> str:
        """Call ttx. Its host is another than ours: all that it shares with it are the runs."""
        done = self._popen([sys.executable, "-c", "from ttstack.cli.main import entry; entry()", *words])
        out, self.stderr = done.communicate(timeout=120)
        assert done.returncode == code, f"{out}\n{self.stderr}"
        return out

    def _popen(self, words: list[str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        environ = {**os.environ, "PYTHONPATH": python_path(), "TTX_STATE": str(self.places.state)}
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environ, start_new_session=True
        )

    def record(self, run: str) -> RunRecord:
        """Read a run's record."""
        return next(entry for entry in self.records() if entry.id == run)

    def records(self) -> tuple[RunRecord, ...]:
        """Read all records; none of them may be torn."""
        log = store_of(self.places.state).read()
        assert log.faults == ()
        return log.runs

    def slots(self) -> list[str]:
        """Say how each card is."""
        return [view.state for view in look(self.places)]

    def engine(self, *words: str, check: bool = True) -> str:
        """Call this host's engine of containers; return what it printed."""
        return docker(*words, check=check, program=self.runtime)

    def slots_of_containers(self) -> dict[str, list[str]]:
        """List the containers of this host's runs, and the cards that each is to have."""
        ids = self.engine("ps", "-aq", "--no-trunc", "--filter", "label=ttstack.run").split()
        runs = {folder.run for folder in run_folders(self.places.state)} if ids else set()
        # One may be removed between the two questions: what the second does not know is not there.
        told = json.loads(self.engine("container", "inspect", *ids, check=False)) if ids else []
        labels = {entry["Id"]: entry["Config"]["Labels"] for entry in told}
        return {
            each: having["ttstack.slots"].split(",") for each, having in labels.items() if having["ttstack.run"] in runs
        }

    def containers(self) -> list[str]:
        """List the containers of this host's runs."""
        return list(self.slots_of_containers())

    def log(self, run: str) -> str:
        """Read a run's log."""
        return run_folder(self.places.state, run).log.read_text()

    def live(self, run: str) -> LiveRun:
        """Look at a run."""
        found = look_at(run_folder(self.places.state, run))
        assert found is not None
        return found

    def kill_supervisor(self, run: str) -> None:
        """Kill a run's supervisor, which is a child of this very process."""
        name = self.live(run).state.supervisor
        process.send(name, signal.SIGKILL)
        os.waitpid(name.pid, 0)

    def clean(self) -> bool:
        """Whether nothing of any run is left."""
        return self.containers() == [] and self.slots() == ["free"] * len(self.numbers)

    def end_all(self) -> None:
        """Leave nothing behind, whatever the test did."""
        for folder in run_folders(self.places.state):
            state = folder.read()
            if state is not None and process.alive(state.supervisor):
                process.send(state.supervisor, signal.SIGKILL)
        for each in self.containers():
            self.engine("rm", "-f", each, check=False)


def find_host(base: Path) -> Host:
    """Find a host that another process made."""
    runtime, numbers = json.loads((base / "host.json").read_text())
    return Host(base, runtime, numbers)


def main(base: str, verb: Literal["run", "up"], arm: str, wait_s: str) -> int:
    """Run an arm; see the module."""
    result = find_host(Path(base)).execute(Path(arm), verb, wait_s=float(wait_s))
    error = result.error
    told = {"run": result.run, "reason": error.reason if error else "", "text": str(error) if error else ""}
    sys.stdout.write(json.dumps(told))
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]))  # type: ignore[arg-type]
