"""How long it takes to find who has a card, beside fuser(1) and lsof(8), with many processes on the host.

usage: python benchmarks/holders.py [--processes N] [--files N] [--rounds N]

Starts processes that sleep, one of which has a device open, looks for it by each way in interleaved rounds, and ends
what it started. Medians and bests are printed, and the ratio to a look into every process; who misses it is named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.containers import Containers, look
from ttstack.host.holders import holders
from ttstack.host.types import Card, Roots

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE = "/dev/full"  # a device that hardly anybody has open
LIFE_S = 300  # what we started ends by itself, too


def _start(processes: int, files: int) -> list[subprocess.Popen[bytes]]:
    """Start sleepers with so many open files each; the last one has the device."""
    with tempfile.TemporaryFile() as file:
        copies = [os.dup(file.fileno()) for _ in range(files)]
        started = [
            subprocess.Popen(["sleep", str(LIFE_S)], stdin=subprocess.DEVNULL, pass_fds=copies)
            for _ in range(processes - 1)
        ]
        for copy in copies:
            os.close(copy)
    with Path(DEVICE).open() as device:
        started.append(subprocess.Popen(["sleep", str(LIFE_S)], stdin=device))
    return started


def _ways(wanted: int, tree: Path) -> dict[str, Callable[[], bool]]:
    """Say how to look; each tells whether it saw the process."""
    card = Card(DEVICE, 0, "0000:01:00.0", "", "", "")
    listing = Roots(proc=tree)  # what a newer driver shows, and no processes
    pids = tree / "driver" / "tenstorrent" / "0" / "pids"
    pids.parent.mkdir(parents=True)
    pids.write_text(f"{wanted}\n")

    def ours(roots: Roots) -> bool:
        found = holders((card,), roots, simulated=False, ask=lambda _cards, _roots: Containers())
        return wanted in [holder.pid for holder in found[card.id].found]

    def other(*command: str) -> bool:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return str(wanted) in done.stdout.split()

    ways: dict[str, Callable[[], bool]] = {
        "ttx, driver without a list": lambda: ours(Roots()),
        "ttx, driver's list": lambda: ours(listing),
    }
    if shutil.which("fuser"):
        ways["fuser"] = lambda: other("fuser", DEVICE)
    if shutil.which("lsof"):
        ways["lsof -t"] = lambda: other("lsof", "-t", DEVICE)
    if shutil.which("docker"):
        ways["ttx, asking docker and podman"] = lambda: not look((card,), Roots()).found  # ours is in no container
    return ways


def main() -> int:
    """Print one row per way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=300)
    parser.add_argument("--files", type=int, default=10, help="open files of each")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    started: list[subprocess.Popen[bytes]] = []
    folder = tempfile.TemporaryDirectory(prefix="ttx-benchmark-")
    try:
        started = _start(args.processes, args.files)
        time.sleep(0.5)  # until the last ones have become `sleep`
        ways = _ways(started[-1].pid, Path(folder.name))
        times: dict[str, list[float]] = {name: [] for name in ways}
        blind: set[str] = set()
        for _ in range(args.rounds):
            for name, way in ways.items():
                begin = time.perf_counter()
                seen = way()
                times[name].append(time.perf_counter() - begin)
                blind |= set() if seen else {name}
        there = sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        folder.cleanup()
    print(f"{there} processes on this host, of which {len(started)} are ours")
    base = statistics.median(times["ttx, driver without a list"])
    print(f"{'way':<32} {'median ms':>9} {'best ms':>8} {'x scan':>7}")
    for name, values in times.items():
        middle = statistics.median(values)
        saw = "  did not see it" if name in blind else ""
        print(f"{name:<32} {middle * 1e3:9.2f} {min(values) * 1e3:8.2f} {middle / base:7.2f}{saw}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
