"""How fast caches are looked at, beside the tool that would do it by hand: ``python benchmarks/caches.py``.

Each line is one measurement of two commands that take turns, on trees that are made here: whole processes, warm disk
cache; the median, the best, which a busy machine disturbs least, and the least processor time, with that of the
programs that were asked. This host's own units and container engines are asked, as always, and the arms of the folder
that it is called in. ``MEASUREMENTS`` is a table: a function that makes a tree and gives the commands to compare.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests" / "cache")]

from cache_kit import complete, fill, inputs_of  # noqa: E402 - where the package and the tests' kit are

from ttstack.cache.registry import rebuild  # noqa: E402

CACHES, FILES, TENSOR = 1000, 300, 4096
_TTX = (sys.executable, "-c", "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()")


@dataclass(frozen=True, slots=True)
class Contest:
    """Ours and the other, as command lines. ``reset``: what undoes a round of each, not measured."""

    ours: Sequence[str]
    other: Sequence[str]
    reset: Callable[[], None] = lambda: None


def _thousand(root: Path) -> None:
    for at in range(CACHES):
        complete(root, inputs_of(mesh=str(at)), files=1)
    rebuild(root)


def ls(root: Path) -> Contest:
    """List a thousand caches, with their markers, uses and the registry; `ls` reads no file."""
    _thousand(root)
    return Contest((*_TTX, "cache", "ls"), ("ls", "-l", "--time-style=full-iso", str(root)))


def ls_find(root: Path) -> Contest:
    """List a thousand caches; `find` and `cat` read each marker, too."""
    _thousand(root)
    return Contest((*_TTX, "cache", "ls"), ("find", str(root), "-name", ".ttx-cache.json", "-exec", "cat", "{}", "+"))


def du(root: Path) -> Contest:
    """Add up a thousand caches."""
    _thousand(root)
    return Contest((*_TTX, "cache", "ls", "--du"), ("du", "-s", str(root)))


def verify(root: Path) -> Contest:
    """Look at sizes and headers of one cache of three hundred files; `stat` looks at sizes."""
    folder = _one(root)
    return Contest((*_TTX, "cache", "verify"), ("find", str(folder), "-type", "f", "-exec", "stat", "{}", "+"))


def verify_full(root: Path) -> Contest:
    """Read every byte of one cache of three hundred files."""
    folder = _one(root)
    return Contest(
        (*_TTX, "cache", "verify", "--full"), ("find", str(folder), "-type", "f", "-exec", "sha256sum", "{}", "+")
    )


def _one(root: Path) -> Path:
    folder = complete(root, files=0)
    fill(folder, FILES, TENSOR)
    return complete(root, files=FILES)


def help_page(_root: Path) -> Contest:
    """Only start: what every figure above contains."""
    return Contest((*_TTX, "--version"), (sys.executable, "-c", "pass"))


MEASUREMENTS: dict[str, Callable[[Path], Contest]] = {
    "ls, beside ls": ls,
    "ls, beside find and cat": ls_find,
    "ls --du, beside du": du,
    "verify, beside stat": verify,
    "verify --full, beside sha256sum": verify_full,
    "start, beside python": help_page,
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What one command took, in seconds."""

    wall: float
    cpu: float  # with its children's


def _taken(words: Sequence[str], env: dict[str, str]) -> Taken:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # Without a timeout, for which subprocess looks whether it is over at growing distances, of up to 50 ms.
    subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _measure(make: Callable[[Path], Contest], rounds: int) -> tuple[list[Taken], list[Taken]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "cache"
        root.mkdir()
        contest = make(root)
        env = {**os.environ, "TTX_CACHE": str(root), "TTX_STATE": f"{folder}/state", "TTX_LOCKS": f"{folder}/locks"}
        # byte code is kept, as an installed ttx has it
        env |= {"PYTHONPATH": str(HERE), "PYTHONPYCACHEPREFIX": f"{folder}/byte-code"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        sides: tuple[list[Taken], list[Taken]] = ([], [])
        for turn in range(rounds + 1):
            for side, words in zip(sides, (contest.ours, contest.other), strict=True):
                taken = _taken(words, env)
                if turn:  # the first round warms the disk cache
                    side.append(taken)
            contest.reset()
    return sides


def _median(side: list[Taken]) -> float:
    return statistics.median(taken.wall for taken in side)


def _row(side: list[Taken], width: int) -> str:
    best, cpu = min(taken.wall for taken in side), min(taken.cpu for taken in side)
    return f"{_median(side) * 1e3:{width}.1f} {best * 1e3:8.1f} {cpu * 1e3:8.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(MEASUREMENTS)}")
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors as it begins")
    print(f"{'what':<34} {'ttx ms':>8} {'best':>8} {'cpu':>8} {'other ms':>9} {'best':>8} {'cpu':>8} {'ratio':>7}")
    for name, make in MEASUREMENTS.items():
        if args.names and not any(name.startswith(wanted) for wanted in args.names):
            continue
        ours, other = _measure(make, args.rounds)
        print(f"{name:<34} {_row(ours, 8)} {_row(other, 9)} {_median(ours) / _median(other):7.1f}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} as it ends")
    return 0


if __name__ == "__main__":
    sys.exit(main())
