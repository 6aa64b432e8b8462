from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from ttstack.run.logscan import LONGEST, Follower, read_log
from ttstack.run.texts import STEPS, failure_in, later_step

if TYPE_CHECKING:
    from pathlib import Path

LOCK = (
    "2026-01-31 10:11:12.123 | warning  |     UMD | Waiting for lock 'CHIP_IN_USE_0_PCIe' which is currently held by"
    " thread TID: 7, PID: 7 (lock_manager.cpp:92)"
)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (LOCK, "lock_wait"),
        ("Waiting for KMD lock X on 0, which is currently held by another handle", "lock_wait"),
        ("(EngineCore pid=87) ERROR 08-12 10:11:12 [core.py:946] EngineCore failed to start.", "engine_failed"),
        ("TT_FATAL @ /work/tt_metal/x.cpp:12: num_chips > 0", "engine_failed"),
        ("TT_THROW @ /work/tt_metal/x.cpp:12: bad", "engine_failed"),
        ('Failed to write data to "x": wrote 1/2 bytes (errno=28 "No space left on device")', "no_space"),
        ("Device 0: Timed out while waiting for active ethernet core 1-2 to become active again", "ethernet"),
        ("Sysmem mapped at unexpected NOC address 0x0", "sysmem"),
        ("2026-01-31 10:11:12.123 | info     |   Metal | all is well (x.cpp:1)", None),
        ("Failed to load cache for x: made again", None),
    ],
)
def test_lines_that_end_a_boot(line: str, reason: str | None) -> None:
    found = failure_in(line, serving=False)
    assert (found.reason if found else None) == reason


def test_what_a_user_wrote_into_a_prompt_stops_no_engine() -> None:
    quoted = f"(APIServer pid=1) INFO 08-12 10:11:12 [logger.py:39] Received request: prompt: {LOCK!r}"
    assert failure_in(quoted, serving=True) is None
    assert failure_in("TT_THROW @ x: bad request", serving=True) is None
    found = failure_in(LOCK, serving=True)
    assert found is not None
    assert found.reason == "lock_wait"


def test_steps_only_go_forward() -> None:
    step = ""
    for name, texts in STEPS.items():
        step = later_step(step, f"x {texts[0]} y")
        assert step == name
    assert later_step("kv", "Opening user mode device driver") == "kv"
    assert later_step("kv", "nothing") == "kv"


def test_a_log_is_read_in_whole_lines_each_once(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    follower = Follower(path)
    assert list(follower.lines()) == []
    with path.open("ab", buffering=0) as log:
        log.write(b"one\ntw")
        assert list(follower.lines()) == ["one"]
        log.write("o\r\n\xff".encode("latin-1"))
        assert list(follower.lines()) == ["two"]
        log.write(b"\n")
        assert list(follower.lines()) == ["\ufffd"]
        assert list(follower.lines()) == []


def test_a_long_log_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    line = b"2026-11-30 12:00:00 INFO " + b"what a user sent " * 20 + b"\n"
    with path.open("wb") as log:
        log.write(b"Cache directory: /c/P150\n")
        for _ in range(6):
            log.write(line * 2_800)
        log.write(b"x" * 5_000_000 + b" last\nbanner one\nGenerating cache for /c/a\nno whole line")
    tracemalloc.start()
    seen = read_log(path, ["one", "re:no[n]e"], "/c")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.banners == {"one": "banner one"}
    assert (seen.cache_dir, seen.wrong_dir, seen.not_loaded, seen.building) == ("/c/P150", "", "", True)
    assert path.stat().st_size > 11_000_000
    assert most < 8_000_000


def test_a_line_without_end_is_cut_and_the_next_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    follower = Follower(path)
    path.write_bytes(b"a" * 3_000_000)
    assert list(follower.lines()) == []
    with path.open("ab") as log:
        log.write(b"a\nb\n")
    assert [len(line) for line in follower.lines()] == [LONGEST, 1]
