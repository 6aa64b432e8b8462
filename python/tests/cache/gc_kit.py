"""A host for gc: caches of any age, arms, and programs that answer as they are told."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seed_kit import tensor

from ttstack.arm.shelf import Shelf
from ttstack.cache.gc import DAY_S, Report, collect
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, write_marker
from ttstack.cache.types import MARKER, TRASH, USED, Builder, Marker
from ttstack.cache.uses import Sources
from ttstack.host.containers import Answer
from ttstack.host.process import boot_id, myself
from ttstack.host.types import Places, ProcessId
from ttstack.sim.host import make_host
from ttstack.slots.claim import Claim, new_claim
from ttstack.slots.take import Request, Slot, acquire

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

    from ttstack.cache.types import State

BUS_DOWN = "Failed to connect to bus: Connection refused"
INPUTS: dict[str, object] = {"version": 1, "model": "Org/Model", "mesh": "P150", "format": "ttnn-0.81.1"}
ARM = """\
schema = 1
pin = "sim"
model = "tiny"
[engine]
kind = "sim"
runtime = "process"
port = 8123
[cards]
count = 1
[env.weights]
WHICH = "{which}"
"""
MODELS = 'schema = 1\n[tiny]\npath = "/nowhere/model"\nserved_name = "tiny"\nrevision = "local"\ncache_gb = 0.001\n'
PIN = 'schema = 1\ndescription = "no image"\ncache_writes_by_rename = true\n'


def iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def builder(*, alive: bool = False, run: str = "run-1", arm: str = "arm") -> Builder:
    process = myself() if alive else ProcessId(os.getpid(), 1)
    return Builder(run, arm, "someone", process, boot_id(), Path("/proc/self/ns/pid").stat().st_ino)


def entry(*sources: str, name: str = "engine", kind: str = "bind", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make what an engine says of a container that mounts folders."""
    mounts = [{"Type": kind, "Source": source, "Destination": f"/in/{at}"} for at, source in enumerate(sources)]
    return {"Id": "ab" * 32, "Name": f"/{name}", "State": {"Status": "running"}, "Mounts": mounts, "Config": {}, **more}


@dataclass
class Host:
    """``containers`` by engine; ``None`` for one that is not installed. ``calls``: what was asked, in order."""

    base: Path
    containers: dict[str, list[dict[str, Any]] | Answer | Exception | None] = field(default_factory=dict)
    volumes: dict[str, dict[str, str]] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  # systemctl show's blocks, by unit
    systemctl: Answer | Exception | None = None  # instead of an answer
    hook: Callable[[Sequence[str]], None] = lambda _: None
    calls: list[list[str]] = field(default_factory=list)
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)
    sources: Sources = field(init=False)
    _held: list[int] = field(default_factory=list)
    _slots: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        roots = make_host(self.base / "tree", cards=2)
        places = Places(self.base / "state", self.base / "locks", self.base / "cache", roots, simulated=True)
        places.cache.mkdir()
        arms, pins = self.base / "arms", self.base / "pins"
        arms.mkdir()
        pins.mkdir()
        (arms / "models.toml").write_text(MODELS)
        (pins / "sim.toml").write_text(PIN)
        (self.base / "units").mkdir()
        self.sources = Sources(
            places,
            (Shelf(arms, pins),),
            run=self.answer,
            environ={},
            socket=self.base / "no.sock",
            unit_folders=(self.base / "units",),
            booted=self.base / "booted",
        )

    @property
    def root(self) -> Path:
        return self.sources.places.cache

    def boot_systemd(self) -> None:
        self.sources.booted.mkdir(exist_ok=True)

    def unit(self, name: str, **directives: str) -> None:
        """Let a unit be loaded, as ``systemctl show`` tells of it."""
        self.boot_systemd()
        told = {"Id": name, "LoadState": "loaded", "NeedDaemonReload": "no", "MainPID": "0", **directives}
        self.shown[name] = "".join(f"{key}={value}\n" for key, value in told.items())

    def unit_file(self, name: str, text: str) -> Path:
        path = self.base / "units" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def arm(self, name: str, which: str = "a", *, folder: Path | None = None) -> Path:
        path = (folder or self.sources.shelves[0].arms) / f"{name}.toml"
        path.write_text(ARM.format(which=which))
        return path

    def cache(  # noqa: PLR0913 - all have defaults
        self,
        which: str = "x",
        *,
        days: float = 40,
        state: State = "complete",
        alive: bool = False,
        files: int = 1,
        inputs: dict[str, object] | None = None,
        **fields: Any,  # noqa: ANN401 - a marker's own
    ) -> Path:
        """Make a tensor cache that was last used some days ago."""
        inputs = inputs or INPUTS | {"env": {"W": which}}
        folder = self.root / key_of(inputs)
        (folder / "P150").mkdir(parents=True)
        for name in ("w", *map(str, range(1, files))):
            (folder / "P150" / f"{name}.tensorbin").write_bytes(tensor(which.encode() * 5000))
        marker = Marker(folder.name, inputs, state, builder(alive=alive), iso(time.time() - days * DAY_S), **fields)
        return self._mark(folder, marker, days)

    def jit(self, name: str, days: float = 40) -> Path:
        folder = self.root / "jit" / name
        folder.mkdir(parents=True)
        (folder / "kernel.o").write_bytes(b"o" * 9000)
        made = iso(time.time() - days * DAY_S)
        return self._mark(folder, Marker(name, {"arm": "a"}, "complete", builder(), made, kind="jit"), days)

    def _mark(self, folder: Path, marker: Marker, days: float) -> Path:
        files = scan(folder)
        if marker.state == "complete":
            write_manifest(folder, files)
        total = sum(each.size for each in files)
        completed = marker.made if marker.state == "complete" else ""
        write_marker(folder, replace(marker, completed=completed, files=len(files), bytes=total))
        (folder / USED).touch()
        return age(folder, days)

    def slot(self, **fields: Any) -> Slot:  # noqa: ANN401 - a claim's own
        """Hold a card with a claim."""
        slot = acquire(Request(1, (), 0), self.sources.places)
        claim: Claim = new_claim("run-9", fields.pop("arm", "held"), myself(), fields.pop("kind", "engine"))
        slot.write(replace(claim, **fields))
        self._slots.append(slot)
        return slot

    def keep(self, handle: int | None) -> None:
        """Hold a lock until the end."""
        assert handle is not None
        self._held.append(handle)

    def close(self) -> None:
        for slot in self._slots:
            slot.let_go()
        for handle in self._held:
            os.close(handle)
        for program in self.programs:
            program.communicate(timeout=10)

    def gc(self, *, keep_days: float = 30, **more: Any) -> Report:  # noqa: ANN401 - collect's own
        return collect(self.sources, keep_days=keep_days, **more)

    def answer(self, argv: Sequence[str], _seconds: float) -> Answer:
        self.calls.append(list(argv))
        self.hook(argv)
        if argv[0] == "systemctl":
            return self._systemctl(argv)
        told = self.containers.get(argv[0])
        if told is None:
            raise FileNotFoundError(argv[0])
        if isinstance(told, Exception):
            raise told
        if isinstance(told, Answer):
            return told
        if "volume" in argv:
            names = argv[argv.index("inspect") + 1 :]
            found = [{"Name": name, "Options": self.volumes[name]} for name in names if name in self.volumes]
            return Answer(int(len(found) < len(names)), json.dumps(found), "")
        wanted = {word.removeprefix("status=") for word in argv if word.startswith("status=")}
        mine = [each for each in told if not wanted or each["State"]["Status"] in wanted]
        if "inspect" in argv:
            return Answer(0, json.dumps(told), "")
        return Answer(0, "".join(f"{each['Id']}\n" for each in mine), "")

    def _systemctl(self, argv: Sequence[str]) -> Answer:
        if isinstance(self.systemctl, Exception):
            raise self.systemctl
        if self.systemctl is not None:
            return self.systemctl
        if "show" not in argv:
            return Answer(0, "".join(f"{name} enabled enabled\n" for name in self.shown), "")
        return Answer(0, "\n".join(self.shown[name] for name in argv[argv.index("--") + 1 :]), "")


def age(folder: Path, days: float) -> Path:
    """Let a directory be last used some days ago."""
    then = time.time() - days * DAY_S
    for name in (USED, MARKER):
        if (folder / name).exists():
            os.utime(folder / name, (then, then))
    return folder


def in_trash(root: Path) -> list[Path]:
    return sorted((root / TRASH).iterdir()) if (root / TRASH).is_dir() else []
