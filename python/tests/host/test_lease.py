"""Whether anybody has a file open, as the kernel tells."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ttstack.host import lease
from ttstack.host.holders import holders
from ttstack.host.lease import nobody_has, one_at_a_time
from ttstack.host.types import Card, Roots

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def node(tmp_path: Path) -> Path:
    path = tmp_path / "tenstorrent" / "0"
    path.parent.mkdir()
    path.write_text("x" * 4096)
    return path


@pytest.mark.parametrize("mode", ["r", "a", "r+"])
def test_who_has_it_open_however_is_seen(node: Path, mode: str) -> None:
    assert nobody_has(str(node))
    with node.open(mode):
        assert not nobody_has(str(node))
    assert nobody_has(str(node))


def test_a_descriptor_that_was_passed_on_and_a_map_are_seen(node: Path) -> None:
    with node.open() as file:
        child = subprocess.Popen(["sleep", "60"], stdin=file)
    assert not nobody_has(str(node))
    child.kill()
    child.wait()
    assert nobody_has(str(node))
    with node.open("r+b") as file:
        kept = mmap.mmap(file.fileno(), 4096)
    assert not nobody_has(str(node))  # no process's descriptors would tell
    kept.close()
    assert nobody_has(str(node))


def test_what_the_kernel_does_not_tell_is_not_nobody(node: Path, tmp_path: Path) -> None:
    assert not nobody_has(str(tmp_path / "missing"))
    assert not nobody_has("/dev/null")  # a device: no leases
    (tmp_path / "link").symlink_to(node)
    assert not nobody_has(str(tmp_path / "link"))


def test_where_there_are_no_leases_processes_tell(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttstack.host.holders.nobody_has", lambda _: False)
    card = Card(str(node), 0, "0000:01:00.0", "", "", "")
    assert holders((card,), Roots(), simulated=True)[card.id].free
    with node.open():
        assert str(os.getpid()) in str(holders((card,), Roots(), simulated=True)[card.id])


ASKER = """
import sys
from ttstack.host.holders import holders
from ttstack.host.types import Card, Roots
card = Card(sys.argv[1], 0, "0000:01:00.0", "", "", "")
seen = {str(holders((card,), Roots(), simulated=True)[card.id]) for _ in range(int(sys.argv[2]))}
print(*seen, sep="; ")
"""


def test_who_asks_is_not_taken_for_somebody_who_has_it(node: Path) -> None:
    askers = [
        subprocess.Popen([sys.executable, "-c", ASKER, str(node), "2000"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [asker.communicate(timeout=60)[0] for asker in askers] == ["nobody\n"] * 3


OPENER = """
import os, sys, time
end = time.monotonic() + 60
print("on", flush=True)
while time.monotonic() < end:
    os.close(os.open(sys.argv[1], os.O_RDWR))
"""


def test_who_opens_it_while_we_ask_neither_ends_us_nor_fails(node: Path) -> None:
    opener = subprocess.Popen([sys.executable, "-c", OPENER, str(node)], stdout=subprocess.PIPE)
    assert opener.stdout is not None
    opener.stdout.readline()
    code = "import sys; from ttstack.host.lease import nobody_has; [nobody_has(sys.argv[1]) for _ in range(10000)]"
    try:
        assert subprocess.run([sys.executable, "-c", code, str(node)], timeout=60, check=False).returncode == 0
        assert opener.poll() is None
    finally:
        opener.kill()
        opener.wait()


def test_askers_are_apart_but_wait_for_nobody_for_ever(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_PATIENCE_S", 0.02)
    folder = os.open(node.parent, os.O_RDONLY)
    with one_at_a_time(str(node.parent)):
        assert not lease._locked(folder)
        with one_at_a_time(str(node.parent)):  # the first does not end
            pass
    assert lease._locked(folder)
    os.close(folder)
    with one_at_a_time(str(node / "nowhere")):
        pass
