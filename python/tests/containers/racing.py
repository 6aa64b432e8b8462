"""Races for one card, as a program: ``racing.py BASE CARD ROUNDS LEFT RIGHT``.

In each round two processes carry out ``up`` of the arms LEFT and RIGHT, which want CARD, from the same moment on. Who
wins is stopped by SIGTERM as soon as its container is there. Every round is a line of JSON: the two exit codes with
what was told, and the containers that claimed the card while the winner had it and afterwards. The processes are
forked, not started, so that 200 rounds are not 400 times an interpreter's start; supervisors and engines are real.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from containers_kit import Host, find_host, main

from ttstack.run.state import run_folders
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from ttstack.run.state import State

_LONG_S = 60.0


def racer(host: Host, arm: str, gate: int, opener: int) -> int:
    """Start a process that waits until nobody has the gate's opener any more and then runs; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.close(opener)
        sys.stdout = (host.base / f"{arm}.told").open("w")
        os.read(gate, 1)
        code = main(str(host.base), "up", str(host.base / "arms" / f"{arm}.toml"), "0")
        sys.stdout.flush()
    finally:
        os._exit(code)


def winner_of(host: Host, arms: tuple[str, str], before: set[str]) -> State | None:
    """Find the run that has its container now."""
    for folder in run_folders(host.places.state):
        if folder.run not in before:
            state = folder.read()
            if state is not None and state.arm in arms and state.container and state.phase == "booting":
                return state
    return None


def race(host: Host, card: str, arms: tuple[str, str]) -> dict[str, object]:
    """Run one round."""
    before = {folder.run for folder in run_folders(host.places.state)}
    gate, opener = os.pipe()
    racers = {racer(host, arm, gate, opener): arm for arm in arms}
    os.close(gate)
    os.close(opener)
    codes: dict[str, int] = {}

    def reap() -> bool:
        pid, status = os.waitpid(-1, os.WNOHANG) if racers else (0, 0)
        if pid in racers:
            codes[racers.pop(pid)] = os.waitstatus_to_exitcode(status)
        return not racers

    wait_until(lambda: reap() or winner_of(host, arms, before) is not None, _LONG_S)
    claimed = host.engine("ps", "-aq", "--filter", f"label=ttstack.slots={card}").split()
    wait_until(lambda: reap() or len(racers) == 1, _LONG_S)  # the loser is told at once, the winner hangs in its boot
    for pid in racers:
        os.kill(pid, signal.SIGTERM)
    wait_until(reap, _LONG_S)
    left = host.engine("ps", "-aq", "--filter", f"label=ttstack.slots={card}").split()
    told = {arm: json.loads((host.base / f"{arm}.told").read_text() or "null") for arm in arms}
    states = [folder.read() for folder in run_folders(host.places.state) if folder.run not in before]
    reasons = [state.reason for state in states if state is not None and state.arm in arms]
    return {"codes": codes, "told": told, "claimed": claimed, "left": left, "reasons": reasons}


def run(base: str, card: str, rounds: str, left: str, right: str) -> None:
    """Run all rounds; see the module."""
    host = find_host(Path(base))
    for _ in range(int(rounds)):
        begun = time.monotonic()
        line = {**race(host, card, (left, right)), "seconds": round(time.monotonic() - begun, 3)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(*sys.argv[1:])
