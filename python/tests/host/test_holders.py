from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from card_trees import HOSTS, host

from ttstack.host.cards import inventory
from ttstack.host.containers import Container, Containers
from ttstack.host.holders import Holders, holders
from ttstack.host.types import Card, Roots

NOBODY = Containers(absent=("no docker here", "no podman here"))


def card(node: Path, number: int = 0) -> Card:
    return Card(str(node), number, f"0000:0{number + 1}:00.0", "", "", "p150a")


def look(card: Card, tree: Path, told: Containers = NOBODY, *, simulated: bool = False) -> Holders:
    roots = Roots(tree / "sys", tree / "proc", tree / "dev")
    return holders((card,), roots, simulated=simulated, ask=lambda _cards, _roots: told)[card.id]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A host's /proc with its first process, and no list of the driver's."""
    (tmp_path / "proc/1/fd").mkdir(parents=True)
    (tmp_path / "proc/1/ns").mkdir()
    (tmp_path / "proc/1/ns/pid").symlink_to("pid:[4026531836]")
    (tmp_path / "proc/self").symlink_to("1")
    return tmp_path


def add_process(tree: Path, pid: int, *targets: str) -> Path:
    folder = tree / "proc" / str(pid) / "fd"
    folder.mkdir(parents=True)
    for at, target in enumerate(targets):
        (folder / str(at)).symlink_to(target)
    (folder.parent / "cmdline").write_bytes(b"python\0serve.py\0")
    return folder


def listed(tree: Path, text: str, number: int = 0) -> None:
    pids = tree / "proc/driver/tenstorrent" / str(number) / "pids"
    pids.parent.mkdir(parents=True)
    pids.write_text(text)


def test_the_drivers_list_is_believed_and_repeats_are_one_holder(tree: Path) -> None:
    listed(tree, "")
    (tree / "proc/78").mkdir()
    (tree / "proc/78/fd").write_text("")  # cannot be looked into, and need not be
    assert look(card(tree / "node"), tree).free
    assert str(look(card(tree / "node"), tree)) == "nobody (no docker here, no podman here)"


def test_the_drivers_list_names_processes(tree: Path) -> None:
    add_process(tree, 77, "/dev/null")
    listed(tree, "77\n77\n0\n")
    found = look(card(Path("/dev/null")), tree)
    assert [holder.pid for holder in found.found] == [0, 77]
    assert str(found) == "a process outside this pid namespace, pid 77 (python serve.py)"
    assert not found.free


def test_who_opened_the_node_and_is_gone_is_not_named_as_having_it(tree: Path) -> None:
    add_process(tree, 77, "/dev/zero")  # its number is another's by now
    listed(tree, "77\n79\n")
    found = look(card(Path("/dev/null")), tree)
    assert str(found) == "a process that has the node from pid 77, a process that has the node from pid 79"
    assert not found.free


@pytest.mark.parametrize("text", ["one\n", None])
def test_a_list_that_cannot_be_read_is_not_nobody(tree: Path, text: str | None) -> None:
    if text is None:
        (tree / "proc/driver/tenstorrent/0/pids").mkdir(parents=True)
    else:
        listed(tree, text)
    found = look(card(tree / "node"), tree)
    assert (found.held, found.complete, found.free) == (False, False, False)
    assert str(found).startswith("held (could not look: cannot read ")


def test_fixture_hosts_are_free_with_and_without_the_list() -> None:
    for name, cards in (("one-p150a", 1), ("two-p150a-swapped", 2), ("p300", 2), ("old-driver", 1)):
        roots = host(name)
        found = holders(inventory(roots), roots, simulated=False, ask=lambda _cards, _roots: Containers())
        assert [entry.free for entry in found.values()] == [True] * cards, f"{name}: {found}"


def test_the_old_hosts_processes_are_looked_at_when_its_driver_is_in_use(tmp_path: Path) -> None:
    shutil.copytree(HOSTS / "old-driver", tmp_path / "host", symlinks=True)
    roots = Roots(tmp_path / "host/sys", tmp_path / "host/proc", tmp_path / "host/dev")
    (roots.sys / "module/tenstorrent/refcnt").write_text("1\n")
    (only,) = inventory(roots)
    assert look(only, tmp_path / "host").free
    (roots.proc / "1/fd/7").symlink_to(only.node)
    assert str(look(only, tmp_path / "host")) == "pid 1 (/sbin/init)"


def test_an_open_simulated_node_has_a_holder(tree: Path) -> None:
    node = tree / "0"
    node.write_text("")
    assert look(card(node), tree, simulated=True).free
    with node.open():
        found = look(card(node), tree, simulated=True)
        assert [holder.pid for holder in found.found] == [os.getpid()]
        assert not found.free
    with (tree / "link").open("w"):  # another file
        assert look(card(node), tree, simulated=True).free


def test_no_container_has_a_simulated_card(tree: Path) -> None:
    node = tree / "0"
    node.write_text("")
    everything = Containers((Container("docker", "a" * 64, "x", None, "privileged"),), (), ("docker hangs",))
    assert look(card(node), tree, everything, simulated=True).free


def test_another_inode_of_the_same_device_counts(tree: Path) -> None:
    null = Path("/dev/null")
    assert stat.S_ISCHR(null.stat().st_mode)
    folder = add_process(tree, 77, "/dev/zero", "socket:[1]", "/gone/meanwhile")
    assert look(card(null), tree).free
    (folder / "9").symlink_to("/dev/null")
    assert str(look(card(null), tree)) == "pid 77 (python serve.py)"


def test_one_look_tells_of_every_card_its_own(tree: Path) -> None:
    add_process(tree, 77, "/dev/null", "/dev/zero")
    add_process(tree, 78, "/dev/zero")
    add_process(tree, 79, "/dev/full")
    listed(tree, "79\n", 2)  # drivers don't mix, but a list that is there is believed
    cards = [card(Path(f"/dev/{name}"), number) for number, name in enumerate(("null", "zero", "full"))]
    roots = Roots(tree / "sys", tree / "proc", tree / "dev")
    found = holders(cards, roots, simulated=False, ask=lambda _cards, _roots: NOBODY)
    assert [[holder.pid for holder in found[each.id].found] for each in cards] == [[77], [77, 78], [79]]


def test_a_process_that_cannot_be_looked_into_is_not_nobody(tree: Path) -> None:
    (tree / "proc/78").mkdir(parents=True)
    (tree / "proc/78/fd").write_text("")  # listing it fails, for root too
    found = look(card(Path("/dev/null")), tree)
    assert (found.found, found.unseen, found.free) == ((), 1, False)
    assert str(found) == "held (could not look: 1 process of other users)"


@pytest.mark.parametrize("ended", [True, False])
def test_a_process_that_ends_while_it_is_looked_into_is_nobody(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    ended: bool,  # noqa: FBT001 - a case
) -> None:
    folder = add_process(tree, 78, "/dev/zero")
    real = os.stat

    def forbidden(path: str | Path, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        if dir_fd is None:
            return real(path, follow_symlinks=follow_symlinks)
        if ended:
            folder.parent.rename(tree / "ended")
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("ttstack.host.holders.os.stat", forbidden)
        assert look(card(Path("/dev/null")), tree).unseen == (0 if ended else 1)


@pytest.mark.parametrize(("count", "free"), [("0\n", True), ("1\n", False), ("", False), ("-\n", False)])
def test_a_driver_that_nobody_uses_is_complete_without_a_look_at_processes(tree: Path, count: str, free: bool) -> None:  # noqa: FBT001 - a case
    (tree / "proc/78").mkdir(parents=True)
    (tree / "proc/78/fd").write_text("")
    (tree / "sys/module/tenstorrent").mkdir(parents=True)
    (tree / "sys/module/tenstorrent/refcnt").write_text(count)
    assert look(card(Path("/dev/null")), tree).free == free


def test_a_pid_namespace_that_is_not_the_hosts_hides_processes(tree: Path) -> None:
    (tree / "proc/1/ns/pid").unlink()
    (tree / "proc/1/ns/pid").symlink_to("pid:[4026532201]")
    found = look(card(Path("/dev/null")), tree)
    assert not found.free
    assert "outside this pid namespace" in str(found)
    listed(tree, "")
    assert look(card(Path("/dev/null")), tree).free  # the driver sees through namespaces


def test_a_proc_without_its_first_process_hides_processes(tree: Path) -> None:
    add_process(tree, 77)
    (tree / "proc/77/ns").mkdir()
    (tree / "proc/77/ns/pid").symlink_to("pid:[4026531836]")
    (tree / "proc/self").unlink()
    (tree / "proc/self").symlink_to("77")
    (tree / "proc/1").rename(tree / "hidden")
    found = look(card(Path("/dev/null")), tree)
    assert not found.free
    assert "hidepid" in str(found)


def test_no_proc_and_no_node_are_not_nobody(tmp_path: Path) -> None:
    assert "cannot list" in str(look(card(Path("/dev/null")), tmp_path))
    (tmp_path / "proc").mkdir()
    assert "cannot look at" in str(look(card(tmp_path / "node"), tmp_path))
    assert not look(card(tmp_path / "node"), tmp_path).free


def test_a_container_has_the_cards_that_it_is_given(tree: Path) -> None:
    listed(tree, "")
    listed(tree, "", 1)
    told = Containers((Container("docker", "ab" * 32, "vllm", frozenset({1}), "device /dev/tenstorrent/1"),))
    assert look(card(tree / "node"), tree, told).free
    found = look(card(tree / "node", 1), tree, told)
    assert (found.held, found.complete, found.free) == (True, True, False)
    assert str(found) == "container vllm (docker abababababab, device /dev/tenstorrent/1)"


def test_an_engine_that_does_not_answer_makes_cards_held(tree: Path) -> None:
    listed(tree, "")
    found = look(card(tree / "node"), tree, Containers(troubles=("docker did not answer within 10 s",)))
    assert (found.held, found.free) == (False, False)
    assert str(found) == "held (could not look: docker did not answer within 10 s)"


@pytest.mark.host
def test_a_real_process_is_found_by_its_device(tmp_path: Path) -> None:
    """In the host's own /proc, with a device that only this test opens: needs root, and the first pid namespace."""
    if os.geteuid() != 0 or os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":  # noqa: PTH115
        pytest.skip("needs root in the host's pid namespace")
    node = card(Path("/dev/full"))
    with subprocess.Popen(["sleep", "60"], stdin=Path("/dev/full").open()) as sleeper:
        found = holders((node,), Roots(sys=tmp_path), simulated=False, ask=lambda _cards, _roots: NOBODY)[node.id]
        sleeper.kill()
    assert sleeper.pid in [holder.pid for holder in found.found]
    assert "sleep 60" in str(found)
