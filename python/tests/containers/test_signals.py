"""SIGINT, SIGTERM and SIGKILL to ttx at random moments of `run`, with real containers."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ttstack.host import process
from ttstack.run.state import run_folders
from ttstack.run.waiting import wait_until
from ttstack.slots.view import look

if TYPE_CHECKING:
    import subprocess

    from containers_kit import Host

pytestmark = pytest.mark.docker

MOMENTS = int(os.environ.get("TTX_MOMENTS", "50"))  # of each signal
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class Shot:
    """A signal, and when it is sent: seconds after the run's start."""

    moment: float
    number: signal.Signals


def _start(host: Host, arms: list[Path]) -> list[subprocess.Popen[str]]:
    return [host.start("run", arm) for arm in arms]


def _shoot(started: list[subprocess.Popen[str]], shots: list[Shot]) -> None:
    begun = time.monotonic()
    for shot, ttx in sorted(zip(shots, started, strict=True), key=lambda pair: pair[0].moment):
        time.sleep(max(0.0, begun + shot.moment - time.monotonic()))
        ttx.send_signal(shot.number)


def _owned(host: Host) -> None:
    """Hold every container against the slots: each has cards of its own, and none of them is free."""
    before = host.slots_of_containers()
    free = {view.card.id for view in look(host.places) if view.state == "free"}
    after = host.slots_of_containers()
    had = [card for container, cards in before.items() if container in after for card in cards]
    assert len(had) == len(set(had)), before
    assert not free & set(had), before


def _told(ttx: subprocess.Popen[str], shot: Shot) -> None:
    out, err = ttx.communicate(timeout=120)
    known = ttx.returncode in {0, 130, -shot.number}
    # Before it minds signals there is nothing to tidy up, and an interrupt ends it as it ends any Python program.
    early = shot.number == signal.SIGINT and ttx.returncode == 1 and out == "" and "KeyboardInterrupt" in err
    assert known or early, (shot, ttx.returncode, out, err)


def _left_running(host: Host) -> list[str]:
    """List the supervisors of this host's runs, and the clients that watch their containers."""
    states = [folder.read() for folder in run_folders(host.places.state)]
    marks = [str(host.base / "state"), *(state.container for state in states if state is not None and state.container)]
    found = []
    for pid in process.pids():
        try:
            words = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue
        found += [words] if pid != os.getpid() and any(mark in words for mark in marks) else []
    return found


def _whole(host: Host, arms: list[Path]) -> float:
    """Measure how long runs take that nobody disturbs, seconds."""
    begun = time.monotonic()
    whole = _start(host, arms)
    assert [json.loads(ttx.communicate(timeout=120)[0])["text"] for ttx in whole] == [""] * len(arms)
    return time.monotonic() - begun


def test_a_signal_at_any_moment_leaves_nothing(wide_host: Host) -> None:
    """As many runs side by side as there are cards; which of these a run gets is left to the slots."""
    seed = int(os.environ.get("TTX_SEED") or secrets.randbelow(1_000_000))
    print(f"TTX_SEED={seed}")  # noqa: T201 - pytest shows it when the test fails
    arms = [wide_host.arm(f"quick{at}", own_cache=True) for at in range(len(wide_host.numbers))]
    length = min(_whole(wide_host, arms) for _ in range(3))  # the first builds caches, and the machine may be busy
    dice = random.Random(seed)  # noqa: S311 - no secret: the same moments again
    shots = [Shot(dice.uniform(0, 1.05 * length), number) for number in SIGNALS for _ in range(MOMENTS)]
    dice.shuffle(shots)
    for at in range(0, len(shots), len(arms)):
        batch = shots[at : at + len(arms)]
        started = _start(wide_host, arms[: len(batch)])
        _shoot(started, batch)
        _owned(wide_host)
        for ttx, shot in zip(started, batch, strict=True):
            _told(ttx, shot)
        settled = wait_until(lambda: all(run.outcome != "running" for run in wide_host.records()), 60)
        assert settled, (batch, [run.outcome for run in wide_host.records()])
        assert wait_until(wide_host.clean, 60), (batch, wide_host.containers(), wide_host.slots())
    records = wide_host.records()
    assert {run.outcome for run in records} == {"ok", "interrupted", "aborted"}
    opened = [run for run in records if run.outcome != "ok"]
    assert len(opened) > len(shots) / 3, len(opened)  # of a run that got faster meanwhile fewer are left to tidy up
    assert wait_until(lambda: _left_running(wide_host) == [], 20), _left_running(wide_host)
