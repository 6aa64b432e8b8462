"""How long slots take, on a simulated host, beside flock(1): to take and give back, around a program, to hand over.

usage: python benchmarks/slots.py [--rounds N]

Medians and bests in ms, and the ratio of the medians to flock(1)'s. Rounds of ttx and of flock are interleaved.
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

from ttstack.cli.hosts import places_for
from ttstack.host.cards import inventory
from ttstack.slots.take import Request, acquire, retake

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttstack.host.types import Card, Places

CODE = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"
WANTED = Request(1, ("0000:01:00.0",), 60)


def _ran(*command: str) -> None:
    subprocess.run(command, check=True, timeout=60)


def _ttx(*words: str) -> list[str]:
    return [sys.executable, "-c", CODE, "slot", "run", "--sim", "--ids", "0000:01:00.0", *words]


def _timed(action: Callable[[], None]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _handed_over(command: list[str], stamp: Path, holding: Callable[[], Callable[[], None]], waits: bytes) -> float:
    """Time from the release to the start of the program that waited. It writes the time of day."""
    release = holding()
    waiter = subprocess.Popen(command, stderr=subprocess.PIPE)
    if waits and waiter.stderr is not None:
        while waits not in waiter.stderr.readline():
            if waiter.poll() is not None:
                raise RuntimeError("the waiter did not wait")
    time.sleep(0.3)  # until it stands still
    begin = time.time()
    release()
    waiter.communicate(timeout=60)
    return float(stamp.read_text().split()[0]) - begin


def _slot(places: Places) -> Callable[[], None]:
    return acquire(WANTED, places).release


def _in_one(places: Places) -> None:
    acquire(WANTED, places).release()


def _keys_only(places: Places, cards: tuple[Card, ...]) -> None:
    """Take and give back without a look at the host: who has the card open, which cards there are."""
    retake(cards, places.locks, None).release()


def _file(path: Path) -> Callable[[], None]:
    holder = subprocess.Popen(["flock", str(path), "sh", "-c", "echo on; exec cat"], stdin=-1, stdout=-1)
    assert holder.stdout is not None  # noqa: S101 - asked for above
    holder.stdout.readline()
    return lambda: holder.communicate()[0] and None


def _show(name: str, ours: list[float], theirs: list[float]) -> None:
    middle, other = statistics.median(ours), statistics.median(theirs)
    print(
        f"{name:<34} {middle * 1e3:9.2f} {min(ours) * 1e3:8.2f} {other * 1e3:9.2f} {min(theirs) * 1e3:8.2f}"
        f" {middle / other:7.2f}"
    )


def main() -> int:
    """Print one row per question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = range(parser.parse_args().rounds)
    if shutil.which("flock") is None:
        parser.error("flock(1) is not here (util-linux)")
    with tempfile.TemporaryDirectory(prefix="ttx-benchmark-") as folder:
        os.environ["TTX_STATE"] = f"{folder}/state"
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        places = places_for(os.environ, simulated=True)
        lock, stamp = Path(folder, "lock"), Path(folder, "stamp")
        mark = ["sh", "-c", f"date +%s.%N >{stamp}"]
        bare = [_timed(lambda: _ran("true")) for _ in rounds]
        first = inventory(places.roots)[:1]
        inside, keys, around, over = [], [], [], []
        for _ in rounds:
            _in_one(places)  # warm
            inside.append((_timed(lambda: _in_one(places)), _timed(lambda: _ran("flock", str(lock), "true"))))
            keys.append((_timed(lambda: _keys_only(places, first)), inside[-1][1]))
            around.append((_timed(lambda: _ran(*_ttx("--", "true"))), _timed(lambda: _ran("flock", str(lock), "true"))))
        for _ in rounds:
            ours = _handed_over(_ttx("--", *mark), stamp, lambda: _slot(places), b"waiting")
            theirs = _handed_over(["flock", str(lock), *mark], stamp, lambda: _file(lock), b"")
            over.append((ours, theirs))
    print(f"{'':<34} {'ttx':>9} {'best':>8} {'flock(1)':>9} {'best':>8} {'ratio':>7}")
    true = statistics.median(bare)
    _show("take and give back, one process", *map(list, zip(*inside, strict=True)))
    _show("the same without looking at cards", *map(list, zip(*keys, strict=True)))
    _show("around `true`", *map(list, zip(*around, strict=True)))
    _show("around `true`, less `true` alone", *([each - true for each in row] for row in zip(*around, strict=True)))
    _show("hand-over, to the program's start", *map(list, zip(*over, strict=True)))
    print(f"`true` alone: {true * 1e3:.2f} ms; hand-over holds the start of the program that waited")
    return 0


if __name__ == "__main__":
    sys.exit(main())
