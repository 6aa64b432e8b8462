"""From a start to a cache, and how each end of a build leaves it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cache_kit import builder, building, complete, fill, inputs_of, marker_of

from ttstack.cache import build, dirs, settle
from ttstack.cache.build import Held, Start, begin
from ttstack.cache.errors import CacheError, CacheRefusedError, RegistryError
from ttstack.cache.lock import KeyLock, state
from ttstack.cache.marker import key_of, read_marker, read_used, write_marker
from ttstack.cache.registry import read_only
from ttstack.cache.survey import standing_of, survey
from ttstack.cache.types import MANIFEST, MARKER, NEW, REGISTRY, USED, Marker
from ttstack.cache.verify import Fault
from ttstack.host.errors import HostError
from ttstack.host.files import write_atomic
from ttstack.run.link import python_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ttstack.cache.registry import Registry
    from ttstack.cache.types import Directory, FileEntry

KEY = key_of(inputs_of())
RUN = builder().run


def start_of(base: Path, inputs: dict[str, Any] | None = None, **fields: Any) -> Start:  # noqa: ANN401 - a start's own
    inputs = inputs_of() if inputs is None else inputs
    known: dict[str, Any] = {"builder": builder(alive=True), **fields}
    return Start(base / "caches", base / "locks", key_of(inputs), inputs, **known)


def room(_registry: Registry) -> int:
    return 1000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "caches"


def standing(root: Path) -> str:
    return standing_of(root / KEY).standing


def marker(root: Path) -> Marker:
    found = read_marker(root / KEY)
    assert found is not None
    return found


def test_a_new_cache_is_marked_before_anything_is_in_it_and_its_builder_is_alone(tmp_path: Path, root: Path) -> None:
    start = start_of(tmp_path, checkpoint="abc")
    held = begin(start, room)
    assert (held.warmth, held.replaced, held.folder) == ("cold", "", root / KEY)
    assert marker(root) == held.marker
    assert (held.marker.state, held.marker.expected, held.marker.checkpoint) == ("building", 1000, "abc")
    assert state(root, KEY) == "exclusive"
    assert standing(root) == "building"
    assert read_used(held.folder) is not None
    assert f"{KEY}" in read_only(root).markers
    with pytest.raises(CacheRefusedError, match=f"being built by run {RUN}.*user me"):
        begin(start, room)
    os.close(held.lock)
    with pytest.raises(CacheRefusedError, match="being built"):
        begin(start, room)  # its lock is gone, and its builder is still there


def test_a_build_that_was_identified_is_complete_and_shared(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    copy = os.dup(held.lock)  # the engine's
    fill(held.folder, files=3)
    whole = settle.complete(root, KEY, RUN, held.lock)
    os.close(held.lock)
    assert (whole.state, whole.files, whole.reason) == ("complete", 3, "")
    assert whole.bytes == sum(path.stat().st_size for path in (root / KEY / "P150").iterdir())
    assert whole.completed >= whole.made
    assert marker(root) == whole
    assert {path.name for path in (root / KEY).iterdir()} == {MARKER, USED, MANIFEST, "P150"}
    assert state(root, KEY) == "shared"
    again = begin(start_of(tmp_path), room)
    assert (again.warmth, again.marker) == ("hit", whole)
    assert state(root, KEY) == "shared"
    assert read_only(root).expected_bytes(inputs_of()) == whole.bytes
    os.close(again.lock)
    os.close(copy)


def test_its_files_are_on_the_disk_before_it_is_called_complete(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder, files=3)
    wanted = {path.stat().st_ino for path in (held.folder / "P150").iterdir()}
    synced: set[int] = set()
    real = os.fsync

    def fsync(handle: int) -> None:
        if marker(root).state == "building":
            synced.add(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    settle.complete(root, KEY, RUN, held.lock)
    assert wanted <= synced
    os.close(held.lock)


def leftover(folder: Path) -> None:
    (folder / "P150" / "w.tensorbin.tmp.77").write_bytes(b"x")


def cut(folder: Path) -> None:
    path = next((folder / "P150").iterdir())
    path.write_bytes(path.read_bytes()[:50])


UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda folder: [path.unlink() for path in (folder / "P150").iterdir()], "wrote nothing"),
    "an empty file": (lambda folder: (folder / "P150" / "w").touch(), "w: it is empty"),
    "a temporary file": (leftover, "left over"),
    "a cut file": (cut, "truncated or corrupt"),
    "a link": (lambda folder: (folder / "P150" / "w").symlink_to("/etc/passwd"), "a link"),
}


@pytest.mark.parametrize(("spoil", "text"), UNFIT.values(), ids=UNFIT)
def test_what_is_not_whole_is_broken_and_the_next_start_builds_it_anew(
    tmp_path: Path, root: Path, spoil: Callable[[Path], object], text: str
) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    spoil(held.folder)
    with pytest.raises(CacheError, match=text) as caught:
        settle.complete(root, KEY, RUN, held.lock)
    assert caught.value.reason == "cache_broken"
    assert (marker(root).state, text in marker(root).reason) == ("broken", True)
    assert state(root, KEY) == "exclusive"  # whoever runs on it still has it alone
    with pytest.raises(CacheRefusedError, match="in use by another run"):
        begin(start_of(tmp_path), room)
    os.close(held.lock)
    told: list[str] = []
    again = begin(start_of(tmp_path), room, tell=told.append)
    assert text in again.replaced
    assert again.warmth == "cold"
    assert any(text in line for line in told)
    assert not (root / KEY / "P150").exists()
    assert [entry for entry in survey(root) if entry.standing == "trash"] == []
    os.close(again.lock)


def test_only_the_builders_run_settles_a_build(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    assert not settle.fail(root, KEY, "another", "x")
    assert not settle.withdraw(root, KEY, "another")
    with pytest.raises(CacheError, match="no longer being built by run another"):
        settle.complete(root, KEY, "another", held.lock)
    assert standing(root) == "building"
    assert settle.fail(root, KEY, RUN, "the disk was full")
    assert (standing(root), marker(root).reason) == ("broken", "the disk was full")
    assert not settle.fail(root, KEY, RUN, "something else")
    assert marker(root).reason == "the disk was full"  # who is first tells why
    with pytest.raises(CacheError, match="broken"):
        settle.complete(root, KEY, RUN, held.lock)
    os.close(held.lock)


def test_a_complete_cache_is_neither_failed_nor_withdrawn(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    settle.complete(root, KEY, RUN, held.lock)
    assert not settle.fail(root, KEY, RUN, "x")
    assert not settle.withdraw(root, KEY, RUN)
    assert standing(root) == "complete"
    assert not settle.fail(root, "f" * 16, RUN, "x")
    os.close(held.lock)


def test_a_build_without_an_engine_is_taken_back(tmp_path: Path, root: Path) -> None:
    held = begin(start_of(tmp_path), room)
    assert settle.withdraw(root, KEY, RUN)
    assert not (root / KEY).exists()
    assert survey(root) == ()
    os.close(held.lock)


def test_when_all_of_ours_are_killed_it_is_abandoned_and_built_anew(tmp_path: Path, root: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from test_build import begin, start_of, room\n"
        "held = begin(start_of(Path(sys.argv[1])), room)\n"
        "(held.folder / 'half').write_bytes(b'x')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path), os.path.dirname(__file__)]  # noqa: PTH120
    subprocess.run(words, env={"PYTHONPATH": python_path()}, check=False, capture_output=True, timeout=60)
    assert standing(root) == "abandoned"
    used: list[str] = []

    def in_use(directory: Directory) -> str:
        used.append(directory.standing)
        return "container abc"

    with pytest.raises(CacheRefusedError, match="container abc still has it"):
        begin(start_of(tmp_path), room, in_use=in_use)
    assert used == ["abandoned"]
    assert standing(root) == "abandoned"
    assert state(root, KEY) == "free"
    held = begin(start_of(tmp_path), room)
    assert held.replaced
    assert not (held.folder / "half").exists()
    os.close(held.lock)


def test_a_supervisor_that_takes_over_is_the_builder(tmp_path: Path, root: Path) -> None:
    os.close(begin(start_of(tmp_path, builder=builder()), room).lock)
    assert standing(root) == "abandoned"
    settle.take_over(root, KEY, replace(builder(alive=True), run="another"))
    assert standing(root) == "abandoned"
    settle.take_over(root, KEY, builder(alive=True))
    assert standing(root) == "building"


@pytest.mark.parametrize("damage", ["cut", "gone", "empty", "manifest"])
def test_a_complete_cache_is_looked_through_before_it_is_used(tmp_path: Path, root: Path, damage: str) -> None:
    folder = complete(root)
    path = next((folder / "P150").iterdir())
    match damage:
        case "cut":
            cut(folder)
        case "gone":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "manifest":
            (folder / MANIFEST).write_text("{")
    reader = KeyLock(root, KEY).shared()
    assert reader is not None
    with pytest.raises(CacheRefusedError, match="in use by another run"):
        begin(start_of(tmp_path), room)  # it is broken, and somebody runs on it
    assert standing(root) == "broken"
    os.close(reader)
    held = begin(start_of(tmp_path), room)
    assert held.replaced
    assert marker(root).state == "building"
    os.close(held.lock)


def test_what_came_later_breaks_nothing_unless_it_could_be_loaded(tmp_path: Path, root: Path) -> None:
    folder = complete(root)
    (folder / "P150" / "empty_kcache").write_bytes(b"12345")  # whole as far as anybody can tell
    leftover(folder)  # never loaded
    held = begin(start_of(tmp_path), room)
    assert held.warmth == "hit"
    (folder / "P150" / "later").touch()
    other = begin(start_of(tmp_path), room)  # the first may be writing it just now
    assert other.warmth == "hit"
    os.close(held.lock)
    os.close(other.lock)
    last = begin(start_of(tmp_path), room)
    assert "later: it is empty" in last.replaced
    os.close(last.lock)


def test_a_complete_one_that_somebody_has_alone_is_refused(tmp_path: Path, root: Path) -> None:
    complete(root)
    alone = KeyLock(root, KEY).exclusive()  # as gc has it before the rename
    assert alone is not None
    with pytest.raises(CacheRefusedError, match="for himself"):
        begin(start_of(tmp_path), room)
    assert standing(root) == "complete"
    os.close(alone)


def test_a_marker_that_was_changed_while_its_cache_was_looked_through_is_not_written_over(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = complete(root)
    trusted = replace(marker(root), checkpoint="new")

    def trusts(_: Path) -> tuple[Fault, ...]:
        write_marker(folder, trusted)
        return (Fault("w", "it is empty", "empty"),)

    monkeypatch.setattr(build, "verify", trusts)
    with pytest.raises(CacheRefusedError, match="checkpoint"):
        begin(start_of(tmp_path), room)
    assert marker(root) == trusted


def test_a_marker_that_was_settled_while_the_build_was_judged_stays(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watchdog of the same run may find the disk full while the last files are synced."""
    held = begin(start_of(tmp_path), room)
    fill(held.folder)
    sync = settle.sync_files

    def fails(folder: Path, files: tuple[FileEntry, ...]) -> None:
        sync(folder, files)
        assert settle.fail(root, KEY, RUN, "the disk was full")

    monkeypatch.setattr(settle, "sync_files", fails)
    with pytest.raises(CacheError, match="no longer being built"):
        settle.complete(root, KEY, RUN, held.lock)
    assert (standing(root), marker(root).reason) == ("broken", "the disk was full")
    os.close(held.lock)


def test_a_file_that_was_being_written_while_it_was_looked_through_is_looked_at_again(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine that wrote it let go of the cache between the look at the file and that at the lock."""
    folder = complete(root)
    engine = KeyLock(root, KEY).shared()
    assert engine is not None
    later = folder / "P150" / "later"
    later.touch()
    look = build.verify

    def ends(path: Path) -> tuple[Fault, ...]:
        found = look(path)
        if not later.stat().st_size:
            later.write_bytes(b"whole")
            os.close(engine)
        return found

    monkeypatch.setattr(build, "verify", ends)
    held = begin(start_of(tmp_path), room)
    assert (held.warmth, standing(root)) == ("hit", "complete")
    os.close(held.lock)


def test_another_checkpoint_is_refused_and_harms_nothing(tmp_path: Path, root: Path) -> None:
    complete(root, checkpoint="old")
    for new in ("new", ""):
        with pytest.raises(CacheRefusedError) as caught:
            begin(start_of(tmp_path, checkpoint=new), room)
        assert caught.value.reason == "checkpoint_changed"
        assert "revision" in caught.value.hint
        assert f"ttx cache trust {KEY}" in caught.value.hint
    assert standing(root) == "complete"
    assert state(root, KEY) == "free"
    held = begin(start_of(tmp_path, checkpoint="old"), room)
    assert held.warmth == "hit"
    os.close(held.lock)


def test_files_without_a_marker_are_nobodys_and_an_empty_folder_is_ours(tmp_path: Path, root: Path) -> None:
    fill(root / KEY)
    with pytest.raises(CacheRefusedError, match="no marker") as caught:
        begin(start_of(tmp_path), room)
    assert f"ttx cache adopt {KEY} --arm try" in caught.value.hint
    assert standing(root) == "unmarked"
    other = inputs_of(mesh="P300")
    (root / key_of(other) / "P150").mkdir(parents=True)
    held = begin(start_of(tmp_path, other), room)
    assert held.warmth == "cold"
    os.close(held.lock)


@pytest.mark.parametrize("odd", ["link", "file", "foreign", "newer"])
def test_what_cannot_be_believed_is_refused_and_kept(tmp_path: Path, root: Path, odd: str) -> None:
    root.mkdir()
    match odd:
        case "link":
            (root / KEY).symlink_to(complete(tmp_path / "elsewhere"))
        case "file":
            (root / KEY).touch()
        case "foreign":
            folder = complete(root)
            (folder / MARKER).write_text((complete(root, inputs_of(mesh="P300")) / MARKER).read_text())
        case "newer":
            folder = complete(root)
            (folder / MARKER).write_text((folder / MARKER).read_text().replace('"schema": 1', '"schema": 2'))
    before = sorted(path for path in root.rglob("*") if ".ttx-" not in str(path.relative_to(root)))
    with pytest.raises(CacheRefusedError, match="cannot be used"):
        begin(start_of(tmp_path), room)
    assert sorted(path for path in root.rglob("*") if ".ttx-" not in str(path.relative_to(root))) == before
    assert state(root, KEY) == "free"


def test_a_registry_that_cannot_be_believed_stops_a_start(tmp_path: Path, root: Path) -> None:
    complete(root)
    (root / REGISTRY).write_text('{"schema": 1')
    with pytest.raises(RegistryError) as caught:
        begin(start_of(tmp_path), room)
    assert "rebuild-registry" in caught.value.hint
    assert standing(root) == "complete"


def test_no_room_leaves_nothing(tmp_path: Path, root: Path) -> None:
    def none(_registry: Registry) -> int:
        raise CacheRefusedError("no room", reason="no_space")

    with pytest.raises(CacheRefusedError, match="no room"):
        begin(start_of(tmp_path), none)
    assert survey(root) == ()
    assert state(root, KEY) == "free"


def test_of_many_starts_of_one_key_one_builds(tmp_path: Path, root: Path) -> None:
    for spoilt in (False, True):
        if spoilt:
            write_marker(root / KEY, replace(marker(root), state="broken", reason="x"))
        everybody = threading.Barrier(4)
        held: list[Held] = []
        refused: list[CacheRefusedError] = []

        def go(everybody: threading.Barrier = everybody, held: list[Held] = held) -> None:
            everybody.wait()
            try:
                held.append(begin(start_of(tmp_path), room))
            except CacheRefusedError as error:
                refused.append(error)  # noqa: B023 - the thread is over before the next round

        threads = [threading.Thread(target=go) for _ in range(everybody.parties)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(held) == 1
        assert len(refused) == everybody.parties - 1
        os.close(held[0].lock)


def test_two_builds_see_each_others_claim_before_either_writes(tmp_path: Path, root: Path) -> None:
    disk = 1500

    def small(registry: Registry) -> int:
        claimed = sum(entry.expected for entry in registry.markers.values() if entry.state == "building")
        if claimed + 1000 > disk:
            raise CacheRefusedError("it does not fit beside the other", reason="no_space")
        return 1000

    everybody = threading.Barrier(2)
    held: list[Held] = []
    refused: list[str] = []

    def go(mesh: str) -> None:
        everybody.wait()
        try:
            held.append(begin(start_of(tmp_path, inputs_of(mesh=mesh)), small))
        except CacheRefusedError as error:
            refused.append(error.reason)

    threads = [threading.Thread(target=go, args=(mesh,)) for mesh in ("P150", "P300")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), refused) == (1, ["no_space"])
    assert len([entry for entry in survey(root) if entry.standing == "building"]) == 1
    os.close(held[0].lock)


def test_a_disk_that_a_build_filled_still_takes_the_word_broken(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begin(start_of(tmp_path), room)
    spare = held.folder / dirs.SPARE
    assert spare.stat().st_blocks * 512 >= 8192
    real = write_atomic

    def full(path: Path, data: bytes) -> None:
        if spare.exists():
            raise HostError("full") from OSError(errno.ENOSPC, "No space left on device")
        real(path, data)

    monkeypatch.setattr("ttstack.cache.marker.write_atomic", full)
    assert settle.fail(root, KEY, RUN, "no space left")
    assert (standing(root), marker(root).reason) == ("broken", "no space left")
    os.close(held.lock)


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path, root: Path) -> None:
    root.write_text("a file")
    with pytest.raises((CacheError, HostError)) as caught:
        begin(start_of(tmp_path), room)
    assert "TTX_CACHE" in caught.value.hint


def test_a_remote_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.cache.build.is_local", lambda _root: False)
    with pytest.raises(CacheRefusedError, match="network"):
        begin(start_of(tmp_path), room)


def test_what_a_start_left_that_was_killed_as_it_made_a_directory_is_trash_and_goes(tmp_path: Path, root: Path) -> None:
    new = root / NEW
    new.mkdir(parents=True)
    (new / dirs.SPARE).write_bytes(b"x")
    (new / f".{MARKER}.5d41402a").write_bytes(b"{")  # as it was written
    assert [(one.key, one.standing) for one in survey(root)] == [(NEW, "trash")]
    held = begin(start_of(tmp_path), room)
    assert [(one.key, one.standing) for one in survey(root)] == [(KEY, "building")]
    os.close(held.lock)


def test_what_others_put_in_the_place_of_a_new_directory_is_kept(tmp_path: Path, root: Path) -> None:
    new = root / NEW
    fill(new)
    assert [one.standing for one in survey(root)] == ["not ours"]
    with pytest.raises(CacheError, match="in the way") as caught:
        begin(start_of(tmp_path), room)
    assert "move it away" in caught.value.hint
    assert state(root, KEY) == "free"
    assert (new / "P150").is_dir()
    new.rename(tmp_path / "elsewhere")
    (tmp_path / "empty").mkdir()
    new.symlink_to(tmp_path / "empty")
    with pytest.raises(CacheError, match="in the way"):
        begin(start_of(tmp_path), room)
    assert (tmp_path / "empty").is_dir()


def test_an_empty_folder_that_somebody_made_is_used_where_it_is(tmp_path: Path, root: Path) -> None:
    (root / KEY).mkdir(parents=True)
    jit = root / "jit" / "try-sim"
    jit.mkdir(parents=True)
    before = [folder.stat().st_ino for folder in (root / KEY, jit)]
    held = begin(start_of(tmp_path), room)
    dirs.mark_jit(jit, builder(), None)
    assert [folder.stat().st_ino for folder in (root / KEY, jit)] == before
    assert (standing(root), standing_of(jit).standing) == ("building", "complete")
    os.close(held.lock)


def test_a_new_directory_belongs_to_the_engines_user(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, user, _group: given.append((str(path), user)))
    os.close(begin(start_of(tmp_path, owner=12345), room).lock)
    dirs.mark_jit(root / "jit" / "try-sim", builder(), 12345)
    assert given == [(str(root / NEW), 12345)] * 2  # before they have their names


@pytest.mark.parametrize("name", ["write_marker", "touch_used", "put_spare", "sync_folder"])
def test_a_directory_that_could_not_be_made_leaves_nothing_unmarked(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(dirs, name, fails)
        with pytest.raises(CacheError, match="No space left"):
            begin(start_of(tmp_path), room)
    assert state(root, KEY) == "free"
    assert {one.standing for one in survey(root)} <= {"building"}
    assert not (root / NEW).exists()


def test_kernel_caches_are_marked_when_they_are_new(tmp_path: Path) -> None:
    root = tmp_path / "caches"
    new, old = root / "jit" / "try-ttnn-1", root / "jit" / "old-ttnn-1"
    dirs.mark_jit(new, builder(), None)
    made = read_marker(new)
    assert made is not None
    assert (made.kind, made.state, made.key) == ("jit", "complete", "try-ttnn-1")
    assert '"jit/try-ttnn-1"' in (root / REGISTRY).read_text()  # it was made under the registry's lock
    os.utime(new / USED, (1, 1))
    (new / "kernel").touch()
    dirs.mark_jit(new, replace(builder(), run="later"), None)
    assert read_marker(new) == made
    assert read_used(new) != 1
    old.mkdir()
    (old / "kernel").touch()
    dirs.mark_jit(old, builder(), None)
    assert read_marker(old) is None
    assert not (old / USED).exists()


def test_a_seed_that_does_not_work_costs_nothing_but_the_seed(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = complete(root, inputs_of(env={"BF4": "1"}))
    start = start_of(tmp_path, inputs_of(env={"BF4": "0"}), in_name=("BF4",), by_rename=True)
    told: list[str] = []
    held = begin(start, room, tell=told.append)
    assert (held.warmth, held.marker.seeded_from, held.seeded > 0) == ("seed", source.name, True)
    assert any(source.name in line for line in told)
    assert settle.withdraw(root, start.key, RUN)
    os.close(held.lock)

    def fails(*_: object, **__: object) -> None:
        raise CacheError("no link, no copy")

    monkeypatch.setattr("ttstack.cache.build.seed", fails)
    held = begin(start, room, tell=told.append)
    assert (held.warmth, held.marker.seeded_from, held.seeded) == ("cold", "", 0)
    assert read_marker(held.folder) == held.marker
    assert "no link, no copy" in told[-1]
    assert settle.withdraw(root, start.key, RUN)
    os.close(held.lock)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ttstack.cache.build.seed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begin(start, room)
    assert not start.folder.exists()
    assert state(root, start.key) == "free"
    assert standing_of(source).standing == "complete"


def test_a_seed_that_was_written_into_breaks_both(tmp_path: Path, root: Path) -> None:
    source = complete(root, inputs_of(env={"BF4": "1"}))
    start = start_of(tmp_path, inputs_of(env={"BF4": "0"}), in_name=("BF4",), by_rename=True)
    held = begin(start, room)
    seeded = next((held.folder / "P150").iterdir())
    if seeded.stat().st_nlink < 2:
        pytest.skip("seeds are no hard links on this disk")
    with seeded.open("r+b") as file:
        file.write(b"\0" * 64)
    with pytest.raises(CacheError, match="in place"):
        settle.complete(root, start.key, RUN, held.lock)
    assert [standing_of(path).standing for path in (source, held.folder)] == ["broken", "broken"]
    os.close(held.lock)


def test_marker_kit_is_what_a_start_writes(tmp_path: Path) -> None:
    """The other tests' markers are those of a real build."""
    held = begin(start_of(tmp_path), room)
    made = building(tmp_path / "other")
    theirs = read_marker(made)
    assert theirs is not None
    assert replace(held.marker, made="", builder=builder(), expected=0) == replace(theirs, made="")
    assert marker_of().key == KEY
    os.close(held.lock)
