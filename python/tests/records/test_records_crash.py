from __future__ import annotations

import errno
import os
import random
import resource
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from records_kit import close_line, open_line, start_python

from ttstack.records.errors import RecordsError
from ttstack.records.merge import merge
from ttstack.records.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "records.jsonl", lock_timeout_s=10)


WRITER = """
import sys
from pathlib import Path
from records_kit import asked, open_line
from ttstack.records.store import Store
path, name, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = Store(Path(path))
print("begin", flush=True)
for number in range(count):
    store.append(open_line(f"{name}-{number}", asked=asked({"filler": name * size})))
    print(number, flush=True)
"""


FORKS = """
import os, random, signal, sys, time
from pathlib import Path
from records_kit import asked, open_line
from ttstack.records.store import Store, encode
path, said, count, size, kills = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
encode(open_line("r"))  # the schema is compiled once for all
pids = {}
for name in "abcdefghijklmnopqrst":
    pids[name] = os.fork()
    if pids[name] == 0:
        told = os.open(said / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in range(count):
            Store(path).append(open_line(f"{name}-{number}", asked=asked({"filler": name * size})))
            os.write(told, b"%d " % number)
        os._exit(0)
dice = random.Random(20260201)
for name in kills:
    time.sleep(dice.uniform(0.0, 0.05))
    os.kill(pids[name], signal.SIGKILL)
codes = {name: os.waitpid(pid, 0)[1] for name, pid in pids.items()}
sys.exit(any(code for name, code in codes.items() if name not in kills))
"""


@pytest.mark.parametrize("kills", ["", "bdfhjlnprt"])
def test_twenty_writers_at_once_lose_and_mix_nothing(store: Store, tmp_path: Path, kills: str) -> None:
    """Ten of them may be killed at any moment: what a writer said to be written is there all the same."""
    said, count, size = tmp_path / "said", 5, 300_000
    said.mkdir()
    process = start_python(FORKS, str(store.path), str(said), str(count), str(size), kills)
    process.communicate(timeout=120)
    assert process.returncode == 0
    store.append(open_line("after"))
    told = {f"{file.name}-{number}" for file in said.iterdir() for number in file.read_text().split()}
    log = store.read()
    runs = [run for run in log.runs if run.id != "after"]
    ids = {run.id for run in runs}
    assert told <= ids
    assert {f"{name}-{at}" for name in "abcdefghijklmnopqrst" if name not in kills for at in range(count)} <= told
    assert len(ids - told) <= len(kills)  # written, and killed before it was said
    assert len(log.faults) <= len(kills)
    assert {fault.kind for fault in log.faults} <= {"torn"}
    assert all(run.opened.asked.arm["filler"] == run.id[0] * size and not run.open_line.changed for run in runs)
    assert len(log.runs) == len(runs) + 1


def test_a_writer_killed_at_any_moment_costs_at_most_its_own_line(store: Store) -> None:
    dice = random.Random(20260131)  # noqa: S311 - moments, not secrets
    told: set[str] = set()
    for number in range(8):
        process = start_python(WRITER, str(store.path), f"w{number}", "100000", "500000")
        assert process.stdout is not None
        process.stdout.readline()
        lines = [process.stdout.readline() for _ in range(number % 3)]  # on a slow machine, too, some are written
        time.sleep(dice.uniform(0.0, 0.04))
        process.kill()
        lines += process.communicate(timeout=60)[0].split()
        told |= {f"w{number}-{line.decode().strip()}" for line in lines}
        store.append(open_line(f"after-{number}"))
    log = store.read()
    ids = {run.id for run in log.runs}
    assert told
    assert told <= ids
    assert {f"after-{number}" for number in range(8)} <= ids
    assert len(ids) <= len(told) + 16
    assert {fault.kind for fault in log.faults} <= {"torn"}


def test_a_file_that_may_not_grow_refuses_and_the_next_line_is_whole(store: Store) -> None:
    store.append(open_line("r-1"))
    size = store.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
    try:
        with pytest.raises(RecordsError, match=os.strerror(errno.EFBIG)):
            store.append(close_line("r-1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.path.stat().st_size == size + 100
    store.append(close_line("r-1"))
    log = store.read()
    assert (log.runs[0].outcome, log.count("torn")) == ("ok", 1)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 2 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.host
def test_a_full_disk_refuses_and_the_next_line_is_whole(small: Path) -> None:
    store = Store(small / "records.jsonl")
    store.append(open_line("r-1"))
    filler = small / "filler"
    filler.write_bytes(b"x" * (2_000_000 - 20_000))
    with pytest.raises(RecordsError, match=os.strerror(errno.ENOSPC)):
        store.append(open_line("r-2", verb="x" * 300_000))
    filler.unlink()
    store.append(close_line("r-1"))
    log = store.read()
    assert [run.outcome for run in log.runs] == ["ok"]
    assert log.count("torn") == 1


@pytest.mark.host
def test_writers_that_fill_the_disk_lose_nothing_that_was_said_to_be_written(small: Path, tmp_path: Path) -> None:
    store = Store(small / "records.jsonl")
    running = [start_python(WRITER, str(store.path), name, "20", "150000") for name in "abcd"]
    told = [process.communicate(timeout=120)[0].decode().split()[1:] for process in running]
    assert all(process.returncode for process in running)  # none could write all
    said = {f"{name}-{number}" for name, numbers in zip("abcd", told, strict=True) for number in numbers}
    log = store.read()
    assert {run.id for run in log.runs} == said
    assert len(said) >= 10
    assert {fault.kind for fault in log.faults} <= {"torn"}
    # A merge into a disk that is full loses nothing either, and goes on from there when there is room.
    for fault in log.faults:
        assert fault.message.startswith("not whole")
    roomy, tight = tmp_path / "all.jsonl", small / "all.jsonl"
    with pytest.raises(RecordsError, match=os.strerror(errno.ENOSPC)):
        merge(tight, [store.path])
    moved = tmp_path / "records.jsonl"
    moved.write_bytes(store.path.read_bytes())
    roomy.write_bytes(tight.read_bytes())
    merge(roomy, [moved])
    assert {run.id for run in Store(roomy).read().runs} == said
