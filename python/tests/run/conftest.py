from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from quick_arm import make_shelf, write_arm

from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.cli.starting import _simulated_env
from ttstack.host import process
from ttstack.host.places import find_places
from ttstack.run.flow import execute
from ttstack.run.journal import store_of
from ttstack.run.link import python_path
from ttstack.run.options import Options
from ttstack.run.runtime import RUN_VARIABLE
from ttstack.sim.host import make_host
from ttstack.slots.view import look

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.records.log import RunRecord
    from ttstack.records.store import Store
    from ttstack.run.flow import Result


@dataclass
class Recorder:
    """Keeps what a run tells."""

    told: list[tuple[str, str]] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)

    def begin(self, phase: str) -> None:
        self.told.append(("begin", phase))

    def detail(self, text: str) -> None:
        self.told.append(("detail", text))

    def check(self, name: str, *, ok: bool | None, detail: str = "") -> None:
        self.told.append((f"check {ok}", f"{name} {detail}"))

    def end(self, phase: str, *, ok: bool, seconds: float) -> None:  # noqa: ARG002
        self.told.append((f"end {ok}", phase))

    def lines(self, title: str, lines: Sequence[str]) -> None:  # noqa: ARG002
        self.tail = list(lines)


@dataclass
class World:
    """A simulated host with its arms in a folder of its own."""

    base: Path
    environ: dict[str, str]
    recorder: Recorder = field(default_factory=Recorder)

    def __post_init__(self) -> None:
        roots = make_host(self.base / "state" / "sim-host" / "tree", cards=2)
        self.places = find_places(simulated=True, environ=self.environ, roots=roots)

    def arm(self, name: str = "quick", *faults: str, cards: str = "count = 1", **more: object) -> Path:
        return write_arm(self.base, name, *faults, cards=cards, **more)

    def execute(self, arm: Path, verb: Literal["run", "up"] = "run", **options: object) -> Result:
        asked = load(str(arm), find_shelf(self.base / "arms", {}, self.base))
        chosen = Options(
            verb=verb,
            extra_env=_simulated_env(self.places),
            **{"engine_command": (sys.executable, "-m", "ttstack.sim"), "listen_wait_s": 0.3, **options},
        )
        self.recorder = Recorder()
        return execute(asked, self.places, chosen, self.recorder)

    def start(self, *words: str) -> subprocess.Popen[str]:
        code = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"
        return subprocess.Popen(
            [sys.executable, "-c", code, "--arms", str(self.base / "arms"), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
            start_new_session=True,
        )

    def ttx(self, *words: str, code: int = 0) -> str:
        done = self.start(*words)
        out, err = done.communicate(timeout=60)
        assert done.returncode == code, f"{out}\n{err}"
        self.stderr = err
        return out

    @property
    def store(self) -> Store:
        return store_of(self.places.state)

    def record(self, run: str) -> RunRecord:
        log = self.store.read()
        assert log.faults == ()
        return next(entry for entry in log.runs if entry.id == run)

    def slots(self) -> list[str]:
        return [view.state for view in look(self.places)]

    def engines(self) -> list[int]:
        return [pid for pid in process.pids() if (process.environ(pid) or {}).get("TTX_SIM_DEV") == str(self.dev)]

    @property
    def dev(self) -> Path:
        return self.places.roots.dev / "tenstorrent"

    def supervisors(self) -> list[int]:
        top = self.places.state / "runs"
        marks = [str(run) for run in top.iterdir()] if top.is_dir() else []
        found = []
        for pid in process.pids():
            words = _words(pid)
            if "ttstack.run.supervisor" in words and any(mark in words for mark in marks):
                found.append(pid)
        return found

    def clean(self) -> bool:
        return self.engines() == [] and self.slots() == ["free", "free"]

    def end_all(self) -> None:
        for pid in [*self.supervisors(), *self.engines()]:
            name = process.identify(pid)
            if name is not None:
                process.send(name, signal.SIGKILL)


def _words(pid: int) -> list[str]:
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    except OSError:
        return []


@pytest.fixture(scope="session")
def pins() -> Path:
    return Path(__file__).resolve().parents[3] / "pins"


@pytest.fixture
def world(tmp_path: Path, pins: Path) -> Iterator[World]:
    shutil.copytree(pins, tmp_path / "pins")
    make_shelf(tmp_path)
    environ = {
        **os.environ,
        "TTX_STATE": str(tmp_path / "state"),
        "TTX_LOCKS": str(tmp_path / "locks"),
        "TTX_LEGACY_LOCK": str(tmp_path / "ttlock"),
        "PYTHONPATH": python_path(),
        "TTX_ARMS": "",
    }
    environ.pop(RUN_VARIABLE, None)
    made = World(tmp_path, environ)
    yield made
    made.end_all()
