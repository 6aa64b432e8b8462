"""A host whose cards are stand-in device nodes, with arms that run the simulated engine in real containers.

As a program, ``containers_kit.py BASE VERB ARM WAIT_S`` runs an arm there as ttx does, and prints how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.host import process
from ttstack.host.types import Places
from ttstack.run.control import LiveRun, look_at
from ttstack.run.flow import Result, execute
from ttstack.run.journal import store_of
from ttstack.run.link import python_path
from ttstack.run.state import run_folder, run_folders
from ttstack.run.work import Options
from ttstack.sim.host import make_host
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ttstack.records.log import RunRecord

ARM = """\
schema = 1
description = "a quick simulated engine in a container"
pin = "sim-image"
model = "tiny"
[engine]
kind = "sim"
runtime = "docker"
port = {port}
boot_timeout_s = {boot_timeout_s}
stop_grace_s = {stop_grace_s}
[engine.args]
max-model-len = 2048
max-num-seqs = 8
sim-boot-ms = {boot_ms}
sim-teardown-ms = 10
sim-prefill-rate = 0
sim-token-ms = 0
{args}
[cards]
{cards}
[expect]
banners = ["re:multidevice with [0-9] devices"]
max_model_len = 2048
"""
FIRST = 'ids = ["0000:01:00.0"]'

# Character devices that are always there, that anybody may open, and that nobody does: the kernel's full and random.
NODES = ((1, 7), (1, 8))


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


def free_port() -> int:
    """Find a port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def docker(*words: str, check: bool = True) -> str:
    """Call docker; return what it printed."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=120, check=False)
    assert not check or done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
    return done.stdout


@dataclass
class Host:
    """A host in a folder of its own."""

    base: Path

    @property
    def places(self) -> Places:
        """Where its things are; its cards are no simulated ones to ttx."""
        roots = make_host(self.base / "tree", cards=len(NODES))
        return Places(self.base / "state", self.base / "locks", self.base / "cache", roots, simulated=False)

    def make_nodes(self) -> None:
        """Put device nodes in the place of the simulated host's files."""
        for number, (major, minor) in enumerate(NODES):
            node = self.places.roots.dev / "tenstorrent" / str(number)
            node.unlink()
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(major, minor))

    def arm(self, name: str = "quick", *faults: str, cards: str = "count = 1", **more: float) -> Path:
        """Write an arm's file."""
        given = {"port": free_port(), "boot_timeout_s": 60, "stop_grace_s": 10, "boot_ms": 40, **more}
        args = f"sim-fault = {json.dumps(faults)}" if faults else ""
        path = self.base / "arms" / f"{name}.toml"
        path.write_text(ARM.format(args=args, cards=cards, **given))
        return path

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

    def containers(self) -> list[str]:
        """List the containers of this host's runs."""
        runs = [folder.run for folder in run_folders(self.places.state)]
        return [each for run in runs for each in docker("ps", "-aq", "--filter", f"label=ttstack.run={run}").split()]

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
        return self.containers() == [] and self.slots() == ["free"] * len(NODES)

    def end_all(self) -> None:
        """Leave nothing behind, whatever the test did."""
        for folder in run_folders(self.places.state):
            state = folder.read()
            if state is not None and process.alive(state.supervisor):
                process.send(state.supervisor, signal.SIGKILL)
        for each in self.containers():
            docker("rm", "-f", each, check=False)


def main(base: str, verb: Literal["run", "up"], arm: str, wait_s: str) -> int:
    """Run an arm; see the module."""
    result = Host(Path(base)).execute(Path(arm), verb, wait_s=float(wait_s))
    error = result.error
    told = {"run": result.run, "reason": error.reason if error else "", "text": str(error) if error else ""}
    sys.stdout.write(json.dumps(told))
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]))  # type: ignore[arg-type]
