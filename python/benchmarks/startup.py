"""How long ``ttx`` takes to start, beside the interpreter alone and beside another command-line program.

usage: python benchmarks/startup.py [--ttx "COMMAND ..."] [--rounds N]

Rounds are interleaved (a slow moment of the machine hits all of them alike); medians and ratios are printed.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import statistics
import subprocess
import sys
import time


def _seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _tab(line: str) -> list[str]:
    """Give the words that, before ttx, make it answer a shell that completes a line."""
    asked = {"_ARGCOMPLETE": 1, "_ARGCOMPLETE_STDOUT_FILENAME": "/dev/null", "COMP_LINE": line, "COMP_POINT": len(line)}
    return ["env", *(f"{name}={value}" for name, value in asked.items())]


def _contestants(ttx: list[str]) -> dict[str, list[str]]:
    found = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "ttx --version": [*ttx, "--version"],
        "ttx arm ls": [*ttx, "arm", "ls"],
        "ttx arm render prod --as docker": [*ttx, "arm", "render", "prod", "--as", "docker"],
        "ttx records ls": [*ttx, "records", "ls"],
        "TAB after ttx": [*_tab("ttx "), *ttx],
        "TAB after ttx arm show": [*_tab("ttx arm show "), *ttx],
        "TAB after ttx down": [*_tab("ttx down "), *ttx],
    }
    # What people type today in the place of the above.
    others = ("docker", "pip")
    return found | {f"{name} --version": [name, "--version"] for name in others if shutil.which(name)}


def main() -> int:
    """Print one row per command: median, best, and the ratio to the bare interpreter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ttx", default=f"{sys.executable} -c 'from ttstack.cli.main import entry; entry()'")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    contestants = _contestants(shlex.split(args.ttx))
    for command in contestants.values():
        _seconds(command)  # warm: page cache and byte code
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(args.rounds):
        for name, command in contestants.items():
            times[name].append(_seconds(command))
    base = statistics.median(times["python -c pass"])
    print(f"{'command':<34} {'median ms':>9} {'best ms':>8} {'x python':>8}")
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:<34} {middle * 1e3:9.1f} {min(values) * 1e3:8.1f} {middle / base:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
