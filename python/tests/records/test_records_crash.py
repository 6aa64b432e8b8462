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
from ttstack.records.store import Store

if TYPE_CHECKING:
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


@pytest.mark.parametrize("writers", [2, 8])
def test_writers_at_once_lose_and_mix_nothing(store: Store, writers: int) -> None:
    count, size = 12, 200_000
    running = [start_python(WRITER, str(store.path), chr(97 + n), str(count), str(size)) for n in range(writers)]
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    log = store.read()
    assert log.faults == ()
    assert {run.id for run in log.runs} == {f"{chr(97 + n)}-{i}" for n in range(writers) for i in range(count)}
    assert all(run.opened.asked.arm["filler"] == run.id[0] * size for run in log.runs)


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


@pytest.mark.host
def test_a_full_disk_refuses_and_the_next_line_is_whole(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        store = Store(small / "records.jsonl")
        store.append(open_line("r-1"))
        filler = small / "filler"
        filler.write_bytes(b"x" * 40_960)
        with pytest.raises(RecordsError, match=os.strerror(errno.ENOSPC)):
            store.append(open_line("r-2", verb="x" * 30_000))
        filler.unlink()
        store.append(close_line("r-1"))
        log = store.read()
        assert [run.outcome for run in log.runs] == ["ok"]
        assert log.count("torn") == 1
    finally:
        subprocess.run(["umount", str(small)], check=True)
