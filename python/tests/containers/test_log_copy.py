"""The copy of a container's log: from its first byte, each byte once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ttstack.run import follow as follow_module
from ttstack.run.follow import LogCopy
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def printing(text: str, code: int, hang: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - a test's own
    nap = "import time; time.sleep(600)" if hang else ""
    return [
        sys.executable,
        "-c",
        f"import sys; sys.stdout.write({text!r}); sys.stdout.flush(); {nap}\nsys.exit({code})",
    ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "_AGAIN_S", 0.0)


def _until_it_has(copy: LogCopy, log: Path, text: str) -> None:
    def has() -> bool:
        copy.keep_up()
        return log.exists() and log.read_text() == text

    assert wait_until(has, 20), log.read_text()


@pytest.mark.usefixtures("quick")
def test_a_copy_that_breaks_off_goes_on_without_a_gap_or_a_line_twice(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    copy = LogCopy(printing("one\ntw", 1), log, fresh=True)
    assert wait_until(lambda: log.read_text() == "one\ntw", 20)
    copy._argv = printing("one\ntwo\nthree\n", 0)
    _until_it_has(copy, log, "one\ntwo\nthree\n")
    assert wait_until(copy.finished, 20)
    assert log.read_text() == "one\ntwo\nthree\n"
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.usefixtures("quick")
def test_an_end_that_no_daemon_confirms_is_copied_once_more(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    copy = LogCopy(printing("one\n", 0), log, fresh=True)
    assert wait_until(lambda: copy._child is not None and copy._child.poll() == 0, 20)
    copy.doubt()
    copy._argv = printing("one\ntwo\n", 0)
    assert wait_until(copy.finished, 20)
    assert log.read_text() == "one\ntwo\n"


@pytest.mark.usefixtures("quick")
def test_a_beginning_that_was_rotated_away_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("one\ntwo\nthree\n")
    copy = LogCopy(printing("four\n", 0), log, fresh=False)
    assert wait_until(copy.finished, 20)
    text = log.read_text()
    assert text.startswith("one\ntwo\nthree\n")
    assert text.endswith("\nfour\n")


def test_a_copy_that_does_not_end_is_left_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "_LAST_S", 0.2)
    log = tmp_path / "engine.log"
    copy = LogCopy(printing("one\n", 0, hang=True), log, fresh=True)
    child = copy._child
    assert child is not None
    assert wait_until(lambda: log.read_text() == "one\n", 20)
    assert not copy.finished()
    assert wait_until(copy.finished, 20)
    assert child.poll() is not None
