"""Two keys to a slot: neither a removed lock file nor a copied text makes a second owner."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ttstack.host.process import myself
from ttstack.host.types import Places, ProcessId
from ttstack.sim.host import make_host
from ttstack.slots import key
from ttstack.slots.claim import new_claim
from ttstack.slots.errors import BusyError, SlotsError
from ttstack.slots.key import Key, is_held, try_key
from ttstack.slots.lock import try_lock
from ttstack.slots.take import Request, acquire, lock_name, retake
from ttstack.slots.view import look

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    roots = make_host(tmp_path / "tree", cards=2)
    return Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)


def states(places: Places) -> list[str]:
    return [view.state for view in look(places)]


BOTH = Request(2, (), 0)


@pytest.mark.parametrize("what", ["files", "folder"])
def test_a_lock_file_that_is_removed_while_it_is_held_makes_no_second_owner(places: Places, what: str) -> None:
    slot = acquire(BOTH, places)
    slot.write(new_claim("run-1", "prod", myself()))
    if what == "folder":
        shutil.rmtree(places.locks)
    else:
        for path in places.locks.glob("*.lock"):
            path.unlink()
    for request in (BOTH, Request(1, ("01:00.0",), 0), Request(1, (), 0)):
        with pytest.raises(BusyError, match="is held by somebody who left no name"):
            acquire(request, places)
    with pytest.raises(BusyError):
        retake(slot.cards, places.locks, None)
    assert states(places) == ["held", "held"]
    slot.release()
    assert states(places) == ["free", "free"]
    acquire(BOTH, places).release()


def test_who_was_passed_the_slot_keeps_it_though_the_lock_file_is_removed(places: Places) -> None:
    slot = acquire(BOTH, places)
    with subprocess.Popen(["sleep", "60"], pass_fds=slot.fds) as child:
        slot.let_go()
        for path in places.locks.glob("*.lock"):
            path.unlink()
        assert states(places) == ["held", "held"]
        child.kill()
    assert states(places) == ["free", "free"]


def test_what_is_left_of_a_half_taken_slot_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.lock"
    first = try_key(path)
    assert first is not None
    path.unlink()
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    assert try_key(path) is None  # its file is new and free, its name is not
    assert try_key(path) is None
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208
    first.close()

    def broken() -> None:
        raise SlotsError("no sockets here")

    monkeypatch.setattr(key, "_socket", broken)
    with pytest.raises(SlotsError, match="no sockets"):
        try_key(path)
    monkeypatch.undo()
    again = try_key(path)
    assert again is not None
    again.close()


def test_either_key_alone_holds_the_slot(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    for keep in ("lock", "name"):
        had = try_key(path)
        assert had is not None
        os.close(had.lock if keep == "name" else had.name)
        assert is_held(path)
        assert try_key(path) is None
        os.close(getattr(had, keep))
        assert not is_held(path)


def test_a_lock_that_knows_no_names_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    alone = try_lock(path)  # as in another network namespace, where our names are not seen
    assert alone is not None
    assert try_key(path) is None
    assert is_held(path)
    os.close(alone)


def test_names_of_other_folders_are_others(tmp_path: Path) -> None:
    keys = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        keys.append(try_key(tmp_path / name / "x.lock"))
    assert all(isinstance(found, Key) for found in keys)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert is_held(tmp_path / "link" / "x.lock")
    for found in keys:
        assert found is not None
        found.close()


def test_a_pid_of_another_namespace_is_never_believed(places: Places) -> None:
    slot = acquire(Request(1, (), 0), places)
    mine = new_claim("run-1", "prod", myself())
    slot.write(mine)
    assert look(places)[0].owner_lives
    slot.write(replace(mine, pid_namespace=mine.pid_namespace + 1))  # copied word for word, from elsewhere
    (view, _) = look(places)
    assert not view.owner_lives
    assert "another pid namespace" in view.text
    slot.write(replace(mine, process=ProcessId(mine.process.pid, mine.process.start + 1)))
    assert not look(places)[0].owner_lives
    assert "its supervisor is gone" in look(places)[0].text
    slot.write(replace(mine, boot="another"))
    assert not look(places)[0].owner_lives
    slot.release()


def test_a_text_alone_holds_nothing(places: Places) -> None:
    slot = acquire(Request(1, (), 0), places)
    slot.write(new_claim("run-1", "prod", myself()))
    text = (places.locks / lock_name(slot.cards[0].id)).read_text()
    slot.release()
    (places.locks / lock_name(slot.cards[0].id)).write_text(text)
    assert states(places) == ["free", "free"]
    acquire(BOTH, places).release()


REMOVER = """
import sys, pathlib, time
folder = pathlib.Path(sys.argv[1])
print("on", flush=True)
until = time.monotonic() + 60
while not (folder / "enough").exists() and time.monotonic() < until:
    for path in folder.glob("locks/*.lock"):
        path.unlink(missing_ok=True)
    time.sleep(0.001)
"""


def test_somebody_who_removes_lock_files_all_the_time_makes_no_second_owner(places: Places, tmp_path: Path) -> None:
    acquire(BOTH, places).release()
    with subprocess.Popen([sys.executable, "-c", REMOVER, str(tmp_path)], stdout=subprocess.PIPE) as remover:
        assert remover.stdout is not None
        remover.stdout.readline()
        try:
            for _ in range(50):
                slot = acquire(BOTH, places)
                with pytest.raises(BusyError):
                    acquire(Request(1, (), 0), places)
                slot.release()
        finally:
            (tmp_path / "enough").touch()
    assert states(places) == ["free", "free"]
