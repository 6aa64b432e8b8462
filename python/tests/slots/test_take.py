from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ttstack.host.files import is_at
from ttstack.host.process import myself
from ttstack.host.types import Places, ProcessId
from ttstack.sim.host import make_host
from ttstack.slots import legacy
from ttstack.slots.claim import new_claim
from ttstack.slots.errors import BusyError, NoSuchCardError, SlotsError
from ttstack.slots.lock import read_note, try_lock
from ttstack.slots.take import Request, Slot, acquire, adopt, lock_name
from ttstack.slots.view import look

A, B = "0000:01:00.0", "0000:02:00.0"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    roots = make_host(tmp_path / "tree", cards=2)
    return Places(tmp_path / "state", tmp_path / "locks", tmp_path / "cache", roots, simulated=True)


def take(places: Places, *names: str, count: int = 1, wait_s: float | None = 0, **more: object) -> Slot:
    return acquire(Request(count, names, wait_s), places, **more)  # type: ignore[arg-type]


def states(places: Places) -> list[str]:
    return [view.state for view in look(places)]


def test_a_slot_is_taken_named_and_given_back(places: Places) -> None:
    slot = take(places, A)
    slot.write(new_claim("run-1", "prod", myself()))
    assert states(places) == ["held", "free"]
    with pytest.raises(BusyError, match=r"run run-1 \(arm prod, user .*, pid \d+\) since \d{4}-") as caught:
        take(places, A)
    assert caught.value.exit_code == 3
    slot.release()
    assert states(places) == ["free", "free"]
    assert read_note(places.locks / lock_name(slot.cards[0].id)) == {}
    assert (places.locks / lock_name(slot.cards[0].id)).exists()  # never unlinked
    take(places, A).release()


def test_any_takes_a_free_one_and_all_or_nothing_leaves_nothing(places: Places) -> None:
    first = take(places)
    second = take(places)
    assert {first.cards[0].bdf, second.cards[0].bdf} == {A, B}
    second.release()
    with pytest.raises(BusyError):
        take(places, count=2)
    take(places).release()  # what the mesh could not use was not kept
    first.release()
    both = take(places, B, A, count=2)
    assert [card.bdf for card in both.cards] == [A, B]
    both.release()


def test_more_cards_than_there_are_is_a_usage_error(places: Places) -> None:
    with pytest.raises(NoSuchCardError):
        take(places, count=3)


def test_a_free_lock_is_not_a_free_card(places: Places) -> None:
    with Path(f"{places.roots.dev}/tenstorrent/0").open():
        assert states(places) == ["open", "free"]
        with pytest.raises(BusyError, match=f"pid {os.getpid()}"):
            take(places, A)
        other = take(places)  # any: the other one
        assert other.cards[0].bdf == B
        other.release()
    take(places, A).release()


def test_a_scan_that_is_not_complete_is_not_a_free_card(places: Places, tmp_path: Path) -> None:
    hidden = tmp_path / "proc" / "78"
    hidden.mkdir(parents=True)
    (hidden / "fd").write_text("")
    real = replace(places, simulated=False, roots=replace(places.roots, proc=tmp_path / "proc"))
    with pytest.raises(BusyError, match="could not look: 1 process of other users"):
        take(real, A)
    assert states(real) == ["unknown", "unknown"]


@pytest.fixture
def real(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """The same cards for real: with the driver's list, in which nobody is, and no engine of containers on PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("ttstack.host.containers.DOCKER_SOCKET", tmp_path / "docker.sock")
    return replace(places, simulated=False)


def engine(tmp_path: Path, script: str) -> None:
    path = tmp_path / "bin" / "docker"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_host_without_engines_has_no_containers(real: Places) -> None:
    assert states(real) == ["free", "free"]
    take(real, A, B, count=2).release()


def test_a_card_that_a_container_has_is_not_free(real: Places, tmp_path: Path) -> None:
    (tmp_path / "told").write_text(
        '[{"Id": "ab12", "Name": "/old", "Config": {"Labels": {"org.tenstorrent.tt-model.devices": "1"}}}]'
    )
    engine(
        tmp_path, f'case "$*" in *inspect*) while read l; do echo "$l"; done <{tmp_path}/told ;; *) echo ab12 ;; esac'
    )
    (tmp_path / "told").write_text((tmp_path / "told").read_text() + "\n")
    assert states(real) == ["free", "open"]
    with pytest.raises(BusyError, match=r"container old \(docker ab12, label"):
        take(real, B)
    slot = take(real)  # any: the other one
    assert slot.cards[0].bdf == A
    slot.release()


def test_a_container_of_a_run_is_shown_with_what_its_dead_supervisor_left(real: Places, tmp_path: Path) -> None:
    labels = '{"org.tenstorrent.tt-model.devices": "0", "ttstack.run": "run-1"}'
    (tmp_path / "told").write_text(f'[{{"Id": "ab12", "Name": "/prod", "Config": {{"Labels": {labels}}}}}]\n')
    engine(
        tmp_path, f'case "$*" in *inspect*) while read l; do echo "$l"; done <{tmp_path}/told ;; *) echo ab12 ;; esac'
    )
    having = r"container prod \(docker ab12, run run-1, label [^)]*\)"
    assert re.fullmatch(having, look(real)[0].text)
    claim = replace(new_claim("run-1", "prod", myself()), process=ProcessId(1 << 30, 1))
    for view in look(real):
        (real.locks / lock_name(view.card.id)).write_text(json.dumps(claim.to_note()))
    (first, second) = look(real)
    assert (first.state, first.claim, first.owner_lives) == ("open", claim, False)
    gone = r"; its supervisor is gone, the engine is not: `ttx adopt run-1` or `ttx down run-1`; "
    assert re.fullmatch(rf"run run-1 \(arm prod, .*\) since [^;]*{gone}{having} has it", first.text)
    assert (second.state, second.claim, second.text) == ("free", None, "")
    other = replace(claim, run="run-2")  # whose engine is gone, too: not it has the card
    (real.locks / lock_name(first.card.id)).write_text(json.dumps(other.to_note()))
    assert re.fullmatch(having, look(real)[0].text)


def test_an_engine_that_does_not_answer_makes_no_card_free(real: Places, tmp_path: Path) -> None:
    engine(tmp_path, 'echo "Cannot connect to the Docker daemon at unix:///x. Is it running?" >&2; exit 1')
    assert states(real) == ["unknown", "unknown"]
    with pytest.raises(BusyError, match="its daemon does not answer"):
        take(real, A)


def test_the_lock_lives_as_long_as_any_copy_of_it(places: Places) -> None:
    slot = take(places, A)
    child = subprocess.Popen(["sleep", "60"], pass_fds=slot.fds)
    slot.let_go()
    assert states(places) == ["held", "free"]
    child.kill()
    child.wait()
    assert states(places) == ["free", "free"]


def test_a_child_that_is_given_nothing_keeps_nothing(places: Places) -> None:
    slot = take(places, A)
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        slot.release()
        assert states(places) == ["free", "free"]
        child.kill()


def test_an_adopted_slot_passes_on_nothing_by_itself(places: Places) -> None:
    slot = take(places, count=2)
    copies = [os.dup(handle) for handle in slot.fds]
    for copy in copies:
        os.set_inheritable(copy, True)  # noqa: FBT003 - positional only
    again = adopt(slot.cards, copies, places.locks, None)
    slot.let_go()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        again.write(new_claim("r", "a", myself()))
        assert read_note(places.locks / lock_name(again.cards[1].id))["run"] == "r"
        again.release()
        assert states(places) == ["free", "free"]
        child.kill()


def test_a_lock_file_that_was_replaced_while_we_waited_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first = try_lock(path)
    assert first is not None
    path.unlink()
    path.write_text("")
    real = os.open
    opened = []

    def stale(name: object, flags: int, mode: int = 0o777) -> int:
        if not opened:  # the first open finds the file that was there before
            opened.append(os.dup(first))
            return opened[0]
        return real(name, flags, mode)  # type: ignore[call-overload,no-any-return]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ttstack.slots.lock.os.open", stale)
        second = try_lock(path)
    assert second is not None
    assert os.fstat(second).st_ino == path.stat().st_ino
    os.close(first)
    os.close(second)


def test_waiting_ends_with_who_has_it_and_says_so_once(places: Places) -> None:
    slot = take(places, A)
    told: list[str] = []
    with pytest.raises(BusyError, match=r"after waiting 0\.1 s"):
        take(places, A, wait_s=0.1, waiting=told.append)
    assert len(told) == 1
    slot.release()


def test_an_interrupted_wait_leaves_no_place_in_the_line(places: Places) -> None:
    slot = take(places, A)

    def give_up() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(places, A, wait_s=None, check=give_up)
    slot.release()
    take(places, A).release()


def test_those_who_wait_are_served_in_the_order_of_their_coming(places: Places) -> None:
    slot = take(places, count=2)
    order: list[str] = []
    ready = [threading.Event() for _ in range(4)]

    def waiter(number: int, count: int) -> None:
        mine = take(places, count=count, wait_s=20, waiting=lambda _: ready[number].set())
        order.append(f"{number}:{count}")
        time.sleep(0.03)
        mine.release()

    threads = []
    for number, count in enumerate([1, 2, 1, 2]):
        thread = threading.Thread(target=waiter, args=(number, count))
        thread.start()
        threads.append(thread)
        assert ready[number].wait(5)
    with pytest.raises(BusyError):
        take(places)  # who does not wait does not overtake
    slot.release()
    for thread in threads:
        thread.join(20)
    assert order == ["0:1", "1:2", "2:1", "3:2"]


ROUNDS = os.environ.get("TTX_TEST_ROUNDS", "50")
RACER = """
import sys, pathlib
from ttstack.host.types import Places, Roots
from ttstack.slots.take import Request, acquire
from ttstack.slots.errors import BusyError
base = pathlib.Path(sys.argv[1])
roots = Roots(base / "tree/sys", base / "tree/proc", base / "tree/dev")
places = Places(base / "state", base / "locks", base / "cache", roots, simulated=True)
names = tuple(sys.argv[2].split(","))
mark = base / "marks"
for _ in range(int(sys.argv[3])):
    slot = acquire(Request(len(names), names, 60), places)
    for card in slot.cards:
        (mark / card.bdf).mkdir()      # fails when two have the card
    for card in slot.cards:
        (mark / card.bdf).rmdir()
    slot.release()
print("done")
"""


def test_parallel_requests_for_one_and_both_never_get_a_card_twice_and_all_end(places: Places, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    wants = [f"{A},{B}", f"{B},{A}", A, B]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), names, ROUNDS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for names in wants
    ]
    for racer in racers:
        out, err = racer.communicate(timeout=120)
        assert (out, racer.returncode) == ("done\n", 0), err
    assert states(places) == ["free", "free"]


WAITER = """
import sys, pathlib
from ttstack.host.types import Places, Roots
from ttstack.slots.take import Request, acquire
base = pathlib.Path(sys.argv[1])
roots = Roots(base / "tree/sys", base / "tree/proc", base / "tree/dev")
places = Places(base / "state", base / "locks", base / "cache", roots, simulated=True)
slot = acquire(Request(int(sys.argv[2]), (), 60), places, waiting=lambda _: print("waits", flush=True))
with (base / "order").open("a") as file:
    file.write(sys.argv[3])
slot.release()
"""


def test_five_processes_get_the_cards_in_the_order_of_their_coming(places: Places, tmp_path: Path) -> None:
    slot = take(places, count=2)
    waiters = []
    for name, count in zip("abcde", "21212", strict=True):
        waiter = subprocess.Popen(
            [sys.executable, "-c", WAITER, str(tmp_path), count, name], stdout=subprocess.PIPE, text=True
        )
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "waits\n"  # it is told so when it stands in line
        waiters.append(waiter)
    slot.release()
    for waiter in waiters:
        waiter.communicate(timeout=60)
        assert waiter.returncode == 0
    assert (tmp_path / "order").read_text() == "abcde"


def test_a_mesh_gets_its_cards_though_single_requests_never_cease(places: Places, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    singles = [
        subprocess.Popen([sys.executable, "-c", RACER, str(tmp_path), name, "100000"], stderr=subprocess.DEVNULL)
        for name in (A, B)
    ]
    try:
        for _ in range(1000):
            if len(list(places.locks.glob("*.lock"))) == 2:
                break  # both have begun
            time.sleep(0.01)
        for _ in range(3):
            take(places, count=2, wait_s=60).release()
        assert [single.poll() for single in singles] == [None, None]
    finally:
        for single in singles:
            single.kill()
            single.wait()


def with_legacy(places: Places, path: Path, wait_s: float = 0) -> Slot:
    return acquire(Request(1, (), wait_s, path), places)


def test_older_drivers_see_our_slots_until_the_last_is_given_back(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "ttlock"
    first, second = with_legacy(places, path), with_legacy(places, path)
    with pytest.raises(FileExistsError):
        path.mkdir()  # what an older driver does
    first.release()
    assert path.is_dir()
    second.release()
    assert not path.exists()


def test_an_older_drivers_lock_keeps_us_away_and_is_never_broken(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "ttlock"
    path.mkdir()
    with pytest.raises(BusyError, match="another driver"):
        with_legacy(places, path, wait_s=0.05)
    legacy.sweep(path)
    assert path.is_dir()
    assert states(places) == ["free", "free"]
    path.rmdir()
    with_legacy(places, path).release()


def test_ours_that_a_killed_ttx_left_is_used_again_and_removed(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "ttlock"
    slot = with_legacy(places, path)
    slot.let_go()  # as the kernel does for a killed process
    assert path.is_dir()
    with_legacy(places, path).release()
    assert not path.exists()


def test_a_death_between_making_the_directory_and_all_else_leaves_no_stranger(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ttlock"
    take(places).release()

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", die)
        with pytest.raises(SystemExit):
            with_legacy(places, path)
    assert list(path.iterdir()) == []  # made, and not so much as marked
    legacy.sweep(path)
    assert not path.exists()
    legacy._make(path)
    (path / legacy.MARKER).unlink()
    with_legacy(places, path).release()
    assert not path.exists()


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_directory_is_signed_and_open_to_all_whatever_the_umask(places: Places, tmp_path: Path, mask: int) -> None:
    path = tmp_path / "ttlock"
    before = os.umask(mask)
    try:
        slot = with_legacy(places, path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o1755
    slot.release()


@pytest.mark.parametrize("kind", ["plain", "open", "file", "link"])
def test_what_others_put_there_is_never_ours(places: Places, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ttlock"
    if kind == "file":
        path.write_text("")
        path.chmod(0o1777)
    elif kind == "link":
        (tmp_path / "signed").mkdir(0o1755)
        path.symlink_to(tmp_path / "signed")
    else:
        path.mkdir(0o700 if kind == "plain" else 0o777)
    with pytest.raises(BusyError, match="another driver"):
        with_legacy(places, path)
    legacy.sweep(path)
    assert path.exists()


def test_one_that_an_older_ttx_made_is_ours(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "ttlock"
    path.mkdir()
    (path / legacy.MARKER).touch()
    with_legacy(places, path).release()
    assert not path.exists()


def test_a_directory_that_is_swept_while_it_is_joined_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "ttlock"
    real = fcntl.flock
    swept: list[bool] = []

    def late(handle: int, what: int) -> None:
        if not swept:
            swept.append(True)
            legacy.sweep(path)  # by a ttx with another folder of locks, and so another guard
        real(handle, what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(legacy.fcntl, "flock", late)
        handle = legacy.join(path)
    assert handle is not None
    assert is_at(handle, path)
    os.close(handle)


def test_tmp_cleaners_see_a_locked_directory(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "ttlock"
    slot = with_legacy(places, path)
    probe = os.open(path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):  # what systemd-tmpfiles tries before it removes a directory
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(probe)
    slot.release()


def test_what_stands_in_a_lock_files_place_is_refused_and_untouched(places: Places, tmp_path: Path) -> None:
    slot = take(places, A)
    lock = places.locks / lock_name(slot.cards[0].id)
    slot.release()
    precious = tmp_path / "precious"
    precious.write_text("precious")

    def link() -> None:
        lock.symlink_to(precious)

    for put in (link, lambda: os.mkfifo(lock), lock.mkdir):
        lock.unlink()
        put()
        with pytest.raises(SlotsError, match=f"the lock {lock}") as caught:
            take(places, A)
        assert "who put it there" in caught.value.hint
        with pytest.raises(SlotsError):
            look(places)
        assert read_note(lock) == {}  # and a pipe is not waited for
        if lock.is_dir() and not lock.is_symlink():
            lock.rmdir()
            lock.touch()
    assert precious.read_text() == "precious"


def test_a_claim_that_anybody_wrote_forges_no_line(places: Places) -> None:
    slot = take(places, A)
    lock = places.locks / lock_name(slot.cards[0].id)
    lock.write_text('{"run": "x\\n0000  free\\u001b[2J", "arm": "", "user": "", "pid": 1, "start": 1}')
    text = look(places)[0].text
    assert text.isprintable()
    assert r"run x\n0000  free\x1b[2J" in text
    lock.write_text("[" * 60000)
    assert look(places)[0].text == "somebody who left no name"
    slot.release()


def test_a_ticket_has_a_number_for_a_name(places: Places) -> None:
    (places.locks / "line").mkdir(parents=True)
    (places.locks / "line" / "²").touch()
    slot = take(places, A)
    with pytest.raises(BusyError):
        take(places, A, wait_s=0.05)
    slot.release()
