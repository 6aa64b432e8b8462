"""Two keys to a slot: neither a removed lock file nor a copied text makes a second owner."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ttstack.host.cards import inventory
from ttstack.host.process import myself
from ttstack.host.types import Card, Places, ProcessId
from ttstack.sim.host import make_host
from ttstack.slots import key
from ttstack.slots.claim import new_claim
from ttstack.slots.errors import BusyError, SlotsError
from ttstack.slots.key import Key, is_held, try_key
from ttstack.slots.lock import try_lock
from ttstack.slots.take import Request, acquire, lock_name, retake
from ttstack.slots.view import look


def places_of(base: Path) -> Places:
    roots = make_host(base / "tree", cards=2)
    return Places(base / "state", base / "locks", base / "cache", roots, simulated=True)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return places_of(tmp_path)


@pytest.fixture
def card(tmp_path: Path) -> Card:
    return inventory(make_host(tmp_path / "host", cards=1))[0]


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


def test_what_is_left_of_a_half_taken_slot_is_nothing(
    tmp_path: Path, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.lock"
    first = try_key(path, card)
    assert first is not None
    path.unlink()
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    assert try_key(path, card) is None  # its file is new and free, its mark is not
    assert try_key(path, card) is None
    with pytest.raises(SlotsError, match="cannot open /nowhere, on which held cards are marked"):
        try_key(path, replace(card, node="/nowhere/tenstorrent/0"))
    monkeypatch.setattr(key, "_others_marked", broken)
    with pytest.raises(SlotsError, match="no locks here"):
        try_key(path, replace(card, serial="another"))
    monkeypatch.undo()
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208
    first.close()
    again = try_key(path, card)
    assert again is not None
    again.close()


def broken(_folder: int, _card: Card) -> bool:
    raise SlotsError("no locks here")


def test_either_key_alone_holds_the_slot(tmp_path: Path, card: Card) -> None:
    path = tmp_path / "x.lock"
    for keep in ("lock", "mark"):
        had = try_key(path, card)
        assert had is not None
        os.close(had.lock if keep == "mark" else had.mark)
        assert is_held(path, card)
        assert try_key(path, card) is None
        os.close(getattr(had, keep))
        assert not is_held(path, card)


def test_a_lock_without_a_mark_counts(tmp_path: Path, card: Card) -> None:
    path = tmp_path / "x.lock"
    alone = try_lock(path)  # as in a container, which has another /dev
    assert alone is not None
    assert try_key(path, card) is None
    assert is_held(path, card)
    os.close(alone)


def test_other_folders_of_locks_make_no_second_owner(places: Places, tmp_path: Path) -> None:
    slot = acquire(BOTH, places)
    elsewhere = replace(places, locks=tmp_path / "elsewhere")
    assert states(elsewhere) == ["held", "held"]
    with pytest.raises(BusyError):
        acquire(Request(1, (), 0), elsewhere)
    slot.release()
    acquire(BOTH, elsewhere).release()


def test_two_who_mark_a_card_at_once_are_both_refused(tmp_path: Path, card: Card) -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    real = key._others_marked
    other: list[Key | None] = []

    def meanwhile(folder: int, card: Card) -> bool:
        if not other:  # ours is set and not looked at yet
            other.append(None)
            other[0] = try_key(tmp_path / "b.lock", card)
        return real(folder, card)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key, "_others_marked", meanwhile)
        mine = try_key(tmp_path / "a.lock", card)
    assert other == [None]
    assert mine is not None  # the other has withdrawn by now
    mine.close()
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_cards_and_hosts_don_t_mix(tmp_path: Path, card: Card) -> None:
    other = inventory(make_host(tmp_path / "other", cards=1))[0]  # of the same serial
    keys = [try_key(tmp_path / f"{name}.lock", each) for name, each in (("a", card), ("b", other))]
    keys.append(try_key(tmp_path / "c.lock", replace(card, serial="another")))
    for found in keys:
        assert found is not None
        found.close()


def test_a_card_whose_node_is_made_anew_is_held_still(places: Places) -> None:
    slot = acquire(BOTH, places)
    for path in places.locks.glob("*.lock"):
        path.unlink()
    shutil.move(places.roots.dev / "tenstorrent", places.locks)  # as a driver that is loaded again does
    shutil.copytree(places.locks / "tenstorrent", places.roots.dev / "tenstorrent", symlinks=True)
    assert states(places) == ["held", "held"]
    slot.release()


APART = """
import ctypes, pathlib, sys
assert ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0  # CLONE_NEWNET
from test_key import *
places = places_of(pathlib.Path(sys.argv[1]))
print(*states(places), flush=True)
try:
    acquire(Request(1, (), 0), places)
    print("taken")
except BusyError:
    print("refused")
"""


@pytest.mark.host
def test_a_removed_lock_file_makes_no_second_owner_in_another_network_namespace(places: Places, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a network namespace")
    slot = acquire(BOTH, places)
    for path in places.locks.glob("*.lock"):
        path.unlink()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", APART, str(tmp_path)], capture_output=True, text=True, env=environ, check=True
    )
    assert done.stdout == "held held\nrefused\n"
    slot.release()


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
