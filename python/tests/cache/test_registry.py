"""The registry: what the disk says, nothing else, and what was measured; nobody's writing is lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cache_kit import age, building, complete, inputs_of, marker_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ttstack.cache import registry as room
from ttstack.cache.errors import CacheError, CacheRefusedError, RegistryError
from ttstack.cache.marker import key_of, read_marker, write_marker
from ttstack.cache.registry import locked, read_only, rebuild
from ttstack.cache.registry_file import LIMIT
from ttstack.cache.types import LOCKS, MARKER, REGISTRY, Marker
from ttstack.errors import Exit
from ttstack.slots.lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(__file__).resolve().parents[2]


def written(root: Path) -> Path:
    """Write a registry with one complete cache in it; return its file."""
    complete(root)
    with locked(root):
        pass
    return root / REGISTRY


def everything(root: Path) -> dict[str, bytes]:
    """All files of a root but the registry and locks."""
    own = {REGISTRY, LOCKS}
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(REGISTRY) and own.isdisjoint(path.relative_to(root).parts)
    }


def test_an_absent_one_is_empty_and_reading_makes_nothing(tmp_path: Path) -> None:
    assert read_only(tmp_path / "absent").markers == {}
    folder = complete(tmp_path)
    assert list(read_only(tmp_path).markers) == [folder.name]
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name]


def test_what_changed_under_the_lock_is_in_it(tmp_path: Path) -> None:
    with locked(tmp_path) as registry:
        folder = building(tmp_path)
        assert registry.markers == {}
    assert read_only(tmp_path).markers[folder.name].state == "building"
    with locked(tmp_path):
        write_marker(folder, marker_of(state="broken", reason="cut"))
    assert _stored(tmp_path)[folder.name][1]["state"] == "broken"


def _stored(root: Path) -> dict[str, list[dict[str, object]]]:
    table: dict[str, list[dict[str, object]]] = json.loads((root / REGISTRY).read_text())["caches"]
    return table


def test_it_is_written_when_the_work_under_the_lock_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        _build_and_fail(tmp_path)
    assert list(_stored(tmp_path)) == [marker_of().key]


def _build_and_fail(root: Path) -> None:
    with locked(root):
        building(root)
        raise ZeroDivisionError


def test_it_keeps_no_fact_that_the_disk_contradicts(tmp_path: Path) -> None:
    one, two, three = (complete(tmp_path, inputs_of(mesh=mesh)) for mesh in ("P150", "P150x2", "P300"))
    with locked(tmp_path):
        pass
    assert len(_stored(tmp_path)) == 3
    (one / MARKER).unlink()  # behind its back
    two.rename(tmp_path / "elsewhere")
    write_marker(three, replace(_marker(three), state="broken", reason="cut"))
    seen = read_only(tmp_path)
    assert {path: marker.state for path, marker in seen.markers.items()} == {three.name: "broken"}
    with locked(tmp_path):
        pass
    assert list(_stored(tmp_path)) == [three.name]
    assert len(read_only(tmp_path).history) == 3  # what was measured stays


def _marker(folder: Path) -> Marker:
    found = read_marker(folder)
    assert found is not None
    return found


@pytest.mark.parametrize("seconds", [0, 1000])
def test_a_marker_that_was_written_since_is_read_again(tmp_path: Path, seconds: float) -> None:
    folder = building(tmp_path)
    with locked(tmp_path):
        pass
    write_marker(folder, marker_of(state="complete"))
    age(folder, seconds)
    assert read_only(tmp_path).markers[folder.name].state == "complete"


def test_two_writes_that_look_the_same_are_told_apart(tmp_path: Path) -> None:
    folder = building(tmp_path)
    with locked(tmp_path):
        pass
    before = (folder / MARKER).stat()
    data = (folder / MARKER).read_bytes()
    (folder / MARKER).write_bytes(data.replace(b"building", b"complete"))  # of one length, within a tick of the clock
    os.utime(folder / MARKER, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read_only(tmp_path).markers[folder.name].state == "complete"


def test_a_marker_that_cannot_be_believed_is_no_fact(tmp_path: Path) -> None:
    folder = complete(tmp_path)
    with locked(tmp_path):
        pass
    (folder / MARKER).write_text("{}")
    assert read_only(tmp_path).markers == {}


def test_links_and_other_folders_are_no_fact(tmp_path: Path) -> None:
    other = complete(tmp_path / "elsewhere")
    (tmp_path / other.name).symlink_to(other)
    (tmp_path / "jit").symlink_to(tmp_path / "elsewhere")
    with locked(tmp_path) as registry:
        assert registry.markers == {}


def test_kernel_caches_are_in_it_and_not_measured(tmp_path: Path) -> None:
    folder = tmp_path / "jit" / "try-sim"
    folder.mkdir(parents=True)
    write_marker(folder, replace(marker_of(), kind="jit", key="try-sim", state="complete", bytes=5))
    with locked(tmp_path) as registry:
        assert registry.markers["jit/try-sim"].kind == "jit"
        assert registry.history == {}


def test_nothing_changed_nothing_written(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = file.stat().st_ino
    with locked(tmp_path):
        pass
    assert file.stat().st_ino == before


def test_the_expected_size_is_that_of_the_nearest_that_was_measured(tmp_path: Path) -> None:
    for changes, size in (
        ({}, 100),
        ({"dtype": "bfloat16"}, 300),
        ({"format": "ttnn-0.80"}, 90),
        ({"mesh": "P300"}, 7),
    ):
        folder = building(tmp_path, inputs_of(**changes))
        write_marker(folder, marker_of(inputs_of(**changes), state="complete", bytes=size, files=1))
    with locked(tmp_path) as registry:
        assert registry.expected_bytes(inputs_of()) == 100
        assert registry.expected_bytes(inputs_of(env={"A": "1"})) == 100  # one other input: the others have two
        assert registry.expected_bytes(inputs_of(dtype="bfloat16", env={"A": "1"})) == 300
        assert registry.expected_bytes(inputs_of(revision="x", format="x", dtype="x")) == 300  # of equals the largest
        assert registry.expected_bytes(inputs_of(mesh="P150x4")) is None
        assert registry.expected_bytes(inputs_of(model="other")) is None


def test_what_was_measured_outlives_the_cache(tmp_path: Path) -> None:
    written(tmp_path)
    folder = tmp_path / key_of(inputs_of())
    folder.rename(tmp_path / "gone")
    with locked(tmp_path) as registry:
        size = registry.expected_bytes(inputs_of())
    assert size == _marker_at(tmp_path / "gone")
    assert read_only(tmp_path).expected_bytes(inputs_of()) == size


def _marker_at(folder: Path) -> int:
    return int(json.loads((folder / MARKER).read_text())["bytes"])


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])


def _newer(file: Path) -> None:
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 2', 1))


def _as_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere.json"))
    file.symlink_to("elsewhere.json")


def _as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _everybodys(file: Path) -> None:
    file.chmod(0o666)


def _outside(file: Path) -> None:
    _replace_entry(file, "../../etc")


def _deeper(file: Path) -> None:
    _replace_entry(file, "jit/../../etc")


def _absolute(file: Path) -> None:
    _replace_entry(file, "/etc")


def _replace_entry(file: Path, path: str) -> None:
    table = json.loads(file.read_text())
    table["caches"][path] = table["caches"].popitem()[1]
    file.write_text(json.dumps(table))


def _wrong_measurement(file: Path) -> None:
    table = json.loads(file.read_text())
    next(iter(table["history"].values()))["inputs"]["mesh"] = "P300"
    file.write_text(json.dumps(table))


def _huge(file: Path) -> None:
    with file.open("ab") as handle:
        handle.truncate(LIMIT + 1)


SPOILT = [
    (lambda file: file.write_bytes(b""), "is not JSON"),
    (lambda file: file.write_bytes(b"\0" * 300), "is not JSON"),
    (_cut, "is not JSON"),
    (_newer, "has schema 2"),
    (_as_link, "it is a link"),
    (_as_folder, "not a regular file"),
    (_as_pipe, "not a regular file"),
    (_everybodys, "may be written by everybody"),
    (_outside, "no directory of a cache under this root"),
    (_deeper, "no directory of a cache under this root"),
    (_absolute, "no directory of a cache under this root"),
    (_wrong_measurement, "is not the key of what is beside it"),
    (_huge, "is larger than"),
]


@pytest.mark.parametrize(("spoil", "text"), SPOILT, ids=[text for _, text in SPOILT])
def test_one_that_cannot_be_believed_is_refused_with_a_way_out(
    tmp_path: Path, spoil: Callable[[Path], object], text: str
) -> None:
    file = written(tmp_path)
    before = everything(tmp_path)
    spoil(file)
    for use in (lambda: read_only(tmp_path), lambda: locked(tmp_path).__enter__()):
        with pytest.raises(RegistryError) as caught:
            use()
        assert text in caught.value.message
        assert "ttx cache rebuild-registry" in caught.value.hint
        assert caught.value.exit_code == Exit.REFUSED
    assert everything(tmp_path).items() >= before.items()  # nothing was deleted because of it
    handle = try_lock(tmp_path / LOCKS / "registry")
    assert handle is not None  # and the lock is free again
    os.close(handle)


@pytest.mark.parametrize(("spoil", "text"), SPOILT, ids=[text for _, text in SPOILT])
def test_rebuilt_it_knows_all_again_and_the_old_one_lies_aside(
    tmp_path: Path, spoil: Callable[[Path], object], text: str
) -> None:
    file = written(tmp_path)
    good, before = file.read_bytes(), everything(tmp_path)
    spoil(file)
    odd = file.lstat()
    found, aside = rebuild(tmp_path)
    assert len(found.markers) == len(found.history) == 1, text
    assert file.read_bytes() == good
    assert aside is not None
    assert aside.name.startswith(f"{REGISTRY}.unreadable-")
    assert (aside.lstat().st_ino, aside.lstat().st_mode) == (odd.st_ino, odd.st_mode)
    assert everything(tmp_path).items() >= before.items()
    assert read_only(tmp_path).markers == found.markers


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_of_one_cut_off_all_whole_measurements_are_kept(tmp_path_factory: pytest.TempPathFactory, share: float) -> None:
    root = tmp_path_factory.mktemp("root")
    for at in range(3):
        write_marker(
            building(root, inputs_of(mesh=str(at))), marker_of(inputs_of(mesh=str(at)), state="complete", bytes=1 + at)
        )
    with locked(root) as registry:
        before = dict(registry.history)
    for folder in [root / key for key in before]:
        (folder / MARKER).unlink()  # so that nothing but the file tells it
    file = root / REGISTRY
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    kept = rebuild(root)[0].history
    whole = {key for key in before if any(key.encode() in line for line in file_lines(data, share))}
    assert kept == {key: before[key] for key in whole}


def file_lines(data: bytes, share: float) -> list[bytes]:
    """The lines of history that a cut leaves whole, with or without the comma behind them."""
    lines = data[: int(share * len(data))].split(b"\n")
    ends = {line.rstrip(b",") for line in data.split(b'"caches"')[0].split(b"\n")}
    return [line for line in lines if line.rstrip(b",") in ends]


def test_a_sound_one_is_rebuilt_in_its_place_and_keeps_its_history(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / key_of(inputs_of())).rename(tmp_path / "gone")
    found, aside = rebuild(tmp_path)
    assert aside is None
    assert (len(found.markers), len(found.history)) == (0, 1)


def test_a_disk_without_room_for_it_is_told_and_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    before = (tmp_path / REGISTRY).read_bytes()

    def fails(code: int) -> Callable[..., None]:
        def write(*_: object) -> None:
            raise CacheError("cannot write") from OSError(code, os.strerror(code))

        return write

    monkeypatch.setattr(room, "write_beside", fails(errno.ENOSPC))
    with locked(tmp_path) as registry:
        building(tmp_path, inputs_of(mesh="P300"))
    assert registry.unwritten == "cannot write"
    assert len(read_only(tmp_path).markers) == 2  # the disk says it all
    with pytest.raises(CacheError):
        rebuild(tmp_path)
    monkeypatch.setattr(room, "write_beside", fails(errno.EIO))
    with pytest.raises(CacheError), locked(tmp_path):
        building(tmp_path, inputs_of(mesh="P150x2"))
    assert (tmp_path / REGISTRY).read_bytes() == before


def test_who_waits_too_long_is_refused(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(CacheRefusedError, match="stayed locked for 0 s"),
        locked(tmp_path, wait_s=0),
    ):
        pass


def test_the_lock_is_no_link(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / LOCKS / "registry").unlink()
    (tmp_path / LOCKS / "registry").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CacheError), locked(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


WRITER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from cache_kit import inputs_of, marker_of
from ttstack.cache.marker import write_marker
from ttstack.cache.registry import locked
root, name = Path(sys.argv[3]), sys.argv[4]
for at in range(8):
    marker = marker_of(inputs_of(mesh=f"{name}-{at}"), state="complete", bytes=1 + at, files=1)
    with locked(root):
        (root / marker.key).mkdir()
        write_marker(root / marker.key, marker)
    if at % 2:
        with locked(root):
            (root / marker.key).rename(root / f".{marker.key}")
"""


def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(PACKAGE), str(Path(__file__).parent), str(tmp_path)]
    started = [subprocess.Popen([*words, str(at)], stderr=subprocess.PIPE, text=True) for at in range(5)]
    for process in started:
        assert process.communicate(timeout=60)[1] == ""
    keys = {(at, turn): key_of(inputs_of(mesh=f"{at}-{turn}")) for at in range(5) for turn in range(8)}
    stored = json.loads((tmp_path / REGISTRY).read_text())  # as the last writer left it, not as the disk corrects it
    assert set(stored["caches"]) == {key for (_, turn), key in keys.items() if not turn % 2}
    assert {key: entry["bytes"] for key, entry in stored["history"].items()} == {
        key: 1 + turn for (_, turn), key in keys.items()
    }
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(f".{REGISTRY}")]


def test_a_root_that_is_a_link_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to("disk")
    folder = complete(tmp_path / "root")
    with locked(tmp_path / "root") as registry:
        assert list(registry.markers) == [folder.name]
    assert (tmp_path / "disk" / REGISTRY).exists()


@pytest.mark.host
@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_one_of_a_stranger_is_not_believed(tmp_path: Path) -> None:
    file = written(tmp_path)
    os.chown(file, 12345, -1)
    with pytest.raises(RegistryError, match="belongs to user 12345, who may not write"):
        read_only(tmp_path)
    tmp_path.chmod(0o775)  # whoever may write here may have written it
    assert read_only(tmp_path).history
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 12345, -1)
    assert read_only(tmp_path).history
