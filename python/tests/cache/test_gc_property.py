"""Random sequences of up, down, build, crash, gc and clock steps, against a model that knows who uses what.

Directories, markers, locks, slots, arms and the answers of docker are real or as real ones are; the engine is a few
files whose content says from which inputs they were made, and the disk is one that has no more room than is said here.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gc_kit import Host, builder, entry
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from seed_kit import tensor

from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.cache import room, settle
from ttstack.cache.build import Held, Start, begin
from ttstack.cache.errors import CacheRefusedError
from ttstack.cache.gc import DAY_S
from ttstack.cache.headers import SIMULATED
from ttstack.cache.manifest import scan
from ttstack.cache.marker import key_of, read_marker
from ttstack.cache.reserve import Allowance, Wanted, check, reserve
from ttstack.cache.survey import survey
from ttstack.cache.uses import uses
from ttstack.host.filesystems import Filesystem

if TYPE_CHECKING:
    import pytest

    from ttstack.cache.registry import Registry
    from ttstack.cache.types import Directory
    from ttstack.slots.take import Slot

ROUNDS = int(os.environ.get("TTX_TEST_ROUNDS", "8"))  # the check `cache` asks for more
NOTHING = Allowance(files=0, jit_bytes=0, jit_files=0, container_bytes=0, container_files=0)
CHUNK, CHUNKS = 4096, 4  # bytes of a file of the engine's, files of a cache
CAPACITY = 3 * CHUNK * CHUNKS  # bytes: not all builds fit
NAMES = ("a", "b", "c", "d")
KINDS = ("docker", "process", "lock")


def meaning(inputs: dict[str, object], number: int) -> bytes:
    """Make what a file must hold that was made from these inputs: the engine's header, and a text that repeats."""
    text = f"{key_of(inputs)}/{number};".encode()
    return tensor((text * CHUNK)[: CHUNK - SIMULATED.size])


@dataclass
class Run:
    """A run, as the model knows it. ``lock``: None when its supervisor is dead."""

    name: str
    held: Held
    inputs: dict[str, object]
    lock: int | None
    slot: Slot | None
    container: dict[str, object] | None
    written: int = 0

    @property
    def building(self) -> bool:
        return self.held.marker.state == "building"


class Caches(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="ttx-test-"))
        self.host = Host(self.base)
        self.host.containers["docker"] = []
        self.runs: list[Run] = []
        self.arms: set[str] = set()
        self.strangers: list[dict[str, object]] = []
        self.shift = 400 * DAY_S  # s; what the clock is off by
        self.count = 0
        self._known: dict[str, dict[str, object]] = {}

    def teardown(self) -> None:
        for run in self.runs:
            self._let_go(run)
        self.host.close()
        shutil.rmtree(self.base)

    # The world.

    def _inputs(self, which: str) -> dict[str, object]:
        """Give an arm's inputs: those of the arm of this name, whether or not it is installed now."""
        if which not in self._known:
            file = self.host.arm(which, which, folder=self.base)
            self._known[which] = dict(cache_key(load(str(file), self.host.sources.shelves[0])).inputs)
        return self._known[which]

    def _reserving(self, key: str) -> object:
        def check_room(_registry: Registry) -> int:
            folder = self.host.root / key
            want = Wanted("x", key, folder, self.base / "jit", None, CHUNK * CHUNKS, CHUNKS, "catalogue", NOTHING)
            check(reserve(self.host.root, want))
            return want.expected

        return check_room

    def _in_use(self, directory: Directory) -> str:
        return ", ".join(use.who for use in uses(self.host.sources).of(directory.path) if use.source == "container")

    def _let_go(self, run: Run) -> None:
        if run.lock is not None:
            os.close(run.lock)
            run.lock = None
        if run.slot is not None:
            run.slot.let_go()
            run.slot = None

    def _tell_docker(self) -> None:
        told = [run.container for run in self.runs if run.container is not None]
        self.host.containers["docker"] = [*told, *self.strangers]

    def used(self) -> set[str]:
        """Name what is used, by the model alone."""
        found = {run.held.folder.name for run in self.runs}
        found |= {key_of(self._inputs(which)) for which in self.arms}
        for container in self.strangers:
            for mount in container["Mounts"]:  # type: ignore[attr-defined]
                source = Path(mount["Source"])
                inside = source.is_relative_to(self.host.root) and source != self.host.root
                names = {source.relative_to(self.host.root).parts[0]} if inside else self._folders()
                found |= names
        return found

    def _folders(self) -> set[str]:
        return {path.name for path in self.host.root.iterdir() if path.is_dir() and not path.name.startswith(".")}

    def _contents(self) -> dict[str, dict[str, bytes]]:
        return {
            name: {
                entry.path: (self.host.root / name / entry.path).read_bytes() for entry in scan(self.host.root / name)
            }
            for name in self._folders()
        }

    # What happens.

    @initialize(begun=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS), st.booleans()), max_size=4))
    def begin_with_some(self, begun: list[tuple[str, str, bool]]) -> None:
        for which, kind, stays in begun:
            self._up(which, kind, whole=True)
            if not stays and self.runs:
                self._end(self.runs[-1])

    @rule(which=st.sampled_from(NAMES), kind=st.sampled_from(KINDS), whole=st.booleans())
    def up(self, which: str, kind: str, whole: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        self._up(which, kind, whole=whole)

    def _up(self, which: str, kind: str, *, whole: bool) -> None:
        inputs = self._inputs(which)
        key, name = key_of(inputs), f"run-{self.count}"
        self.count += 1
        slot = None
        if kind == "process":
            if sum(run.slot is not None for run in self.runs) == 2:
                return  # the host has two cards
            slot = self.host.slot(cache=key, run=name, arm=which)
        who = builder(run=name, arm=which)  # whose process is dead: the lock alone tells that it lives
        start = Start(self.host.root, self.base / "locks", key, inputs, who)
        try:
            held = begin(start, self._reserving(key), in_use=self._in_use)  # type: ignore[arg-type]
        except CacheRefusedError:
            if slot is not None:
                slot.let_go()
            return
        container = None
        if kind == "docker":
            container = entry(str(held.folder), name=name, Id=f"{self.count:064x}")
        run = Run(name, held, inputs, held.lock, slot, container)
        self.runs.append(run)
        self._tell_docker()
        if whole and run.building:
            self._build(run, whole=True)

    @precondition(lambda self: any(run.building and run.lock is not None for run in self.runs))
    @rule(data=st.data(), whole=st.booleans())
    def build(self, data: st.DataObject, whole: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        self._build(
            data.draw(st.sampled_from([run for run in self.runs if run.building and run.lock is not None])), whole=whole
        )

    def _build(self, run: Run, *, whole: bool) -> None:
        for number in range(run.written, CHUNKS if whole else min(CHUNKS, run.written + 1)):
            (run.held.folder / f"w{number}.tensorbin").write_bytes(meaning(run.inputs, number))
            run.written = number + 1
        if not whole:
            return
        assert run.lock is not None
        marker = settle.complete(self.host.root, run.held.folder.name, run.name, run.lock)
        run.held = Held(run.held.folder, run.lock, run.held.warmth, marker)

    @precondition(lambda self: any(run.building and run.lock is not None for run in self.runs))
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from([run for run in self.runs if run.building and run.lock is not None]))
        settle.fail(self.host.root, run.held.folder.name, run.name, "its engine ended")
        self._end(run)

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Kill a supervisor: its locks are free at once; a container stays."""
        run = data.draw(st.sampled_from(self.runs))
        self._let_go(run)
        if run.container is None:
            self._end(run)

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def down(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.runs))
        if run.building and run.lock is not None:
            settle.fail(self.host.root, run.held.folder.name, run.name, "it was stopped")
        self._end(run)

    def _end(self, run: Run) -> None:
        self._let_go(run)
        self.runs.remove(run)
        self._tell_docker()

    @rule(which=st.sampled_from(NAMES))
    def install_arm(self, which: str) -> None:
        self.arms ^= {which}
        if which in self.arms:
            self.host.arm(which, which)
        else:
            (self.host.sources.shelves[0].arms / f"{which}.toml").unlink()

    @rule(data=st.data())
    def mount_by_hand(self, data: st.DataObject) -> None:
        """Start somebody's container, in place of the one before, or end it."""
        folders = [self.host.root / name for name in sorted(self._folders())]
        place = data.draw(st.sampled_from([None, None, None, self.base, self.host.root, *folders]))
        self.strangers = [] if place is None else [entry(str(place), name="mine", Id="ef" * 32)]
        self._tell_docker()

    @precondition(lambda self: self._idle())
    @rule(data=st.data())
    def spoil(self, data: st.DataObject) -> None:
        """Cut a file of a complete cache that nobody uses now."""
        folder = self.host.root / data.draw(st.sampled_from(self._idle()))
        with suppress(FileNotFoundError):
            (folder / "w0.tensorbin").write_bytes(b"")

    def _idle(self) -> list[str]:
        busy = {run.held.folder.name for run in self.runs}
        return sorted(
            each.key for each in survey(self.host.root) if each.standing == "complete" and each.key not in busy
        )

    @rule(days=st.sampled_from((-400, 0, 1, 40, 400, 400)))
    def step_clock(self, days: int) -> None:
        self.shift = days * DAY_S

    @rule(keep=st.sampled_from((0, 30)), dry=st.booleans())
    def gc(self, keep: int, dry: bool) -> None:  # noqa: FBT001 - as above
        used, before = self.used(), self._contents()
        report = self.host.gc(keep_days=keep, dry_run=dry, now=lambda: time.time() + self.shift)
        after = self._contents()
        assert report.unread == ()
        assert report.count("failed") == 0
        for name, content in before.items():
            if name in used or dry:
                assert after.get(name) == content, f"{name} is used, and gc changed it"
        if not dry:
            gone = {each.directory.key for each in report.entries if each.verdict.decision == "deleted"}
            assert before.keys() - after.keys() == gone & before.keys()
            if keep == 0 and self.shift >= DAY_S:
                assert after.keys() <= used, "what nobody uses goes"

    # What must always be so.

    @invariant()
    def a_key_has_one_meaning(self) -> None:
        for directory in survey(self.host.root):
            marker = directory.marker
            if marker is None or directory.path.parent != self.host.root:
                continue
            assert key_of(marker.inputs) == directory.key
            for file in scan(directory.path):
                data = (directory.path / file.path).read_bytes()
                number = int(Path(file.path).stem.removeprefix("w"))
                assert data in {b"", meaning(dict(marker.inputs), number)}

    @invariant()
    def what_runs_is_there(self) -> None:
        for run in self.runs:
            marker = read_marker(run.held.folder)
            assert marker is not None
            if not run.building and run.lock is not None:
                assert marker.state == "complete"

    @invariant()
    def what_is_reserved_fits(self) -> None:
        left = 0
        for directory in survey(self.host.root):
            if directory.standing == "building" and directory.marker is not None:
                left += max(0, directory.marker.expected - _bytes(directory.path))
        assert left <= CAPACITY - _bytes(self.host.root)


def _bytes(folder: Path) -> int:
    """Add up what engines wrote: our own small files have their room in the margin."""
    return sum(path.stat().st_size for path in folder.rglob("*.tensorbin"))


def test_no_sequence_deletes_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def disk(path: Path, _proc: Path) -> Filesystem:
        base = next(folder for folder in (path, *path.parents) if folder.name.startswith("ttx-test-"))
        return Filesystem("one", "ext4", "/disk", max(0, CAPACITY - _bytes(base / "cache")), None, read_only=False)

    monkeypatch.setattr(room, "filesystem_of", disk)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is cut here
    run_state_machine_as_test(
        Caches,
        settings=settings(
            max_examples=2 * ROUNDS,
            stateful_step_count=50,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),  # a shorter sequence is not worth minutes
        ),
    )
