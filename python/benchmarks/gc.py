"""How long `ttx cache gc --dry-run` takes over a thousand caches, beside `find -mtime`, which only compares times.

usage: python benchmarks/gc.py [--caches N] [--files N] [--rounds N]

Medians and bests in ms, and the ratio to find(1)'s; the load of the machine as it begins and ends. Half of the caches
may go; the host's own units, arms, containers and slots are asked, as they are here and now (a docker that does not
answer is left out, and said so).
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

from ttstack.cache.gc import DAY_S, collect
from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, write_marker
from ttstack.cache.types import MARKER, USED, Builder, Marker
from ttstack.cache.uses import Sources, uses
from ttstack.host.types import Places, ProcessId, Roots

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parents[1]
CODE = "import sys; from ttstack.cli.main import entry; sys.argv[0] = 'ttx'; entry()"
OLD_DAYS, KEEP_DAYS = 60, 30


def _make(root: Path, number: int, files: int) -> None:
    inputs = {"version": 1, "model": f"Org/Model-{number % 7}", "env": {"N": str(number)}}
    folder = root / key_of(inputs)
    folder.mkdir()
    for at in range(files):
        (folder / f"w{at}.tensorbin").write_bytes(b"w" * 1000)
    entries = scan(folder)
    write_manifest(folder, entries)
    builder = Builder("run", "arm", "user", ProcessId(1, 1), "", 0)
    made = "2020-01-01T00:00:00Z"
    write_marker(
        folder,
        Marker(folder.name, inputs, "complete", builder, made, completed=made, files=files, bytes=files * 1000),
    )
    (folder / USED).touch()
    then = time.time() - (OLD_DAYS if number % 2 else 1) * DAY_S
    for name in (MARKER, USED):
        os.utime(folder / name, (then, then))


def _timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _silence(folder: Path) -> None:
    """Put a docker on PATH that has no containers: the real one does not answer, and gc would rightly stop there."""
    folder.mkdir()
    (folder / "docker").write_text("#!/bin/sh\n")
    (folder / "docker").chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def _find(root: Path) -> None:
    # Without a timeout, for which subprocess looks whether it is over at growing distances, of up to 50 ms.
    subprocess.run(
        ["find", str(root), "-mindepth", "2", "-maxdepth", "2", "-name", USED, "-mtime", f"+{KEEP_DAYS}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _show(name: str, ours: list[float], theirs: list[float]) -> None:
    middle, other = statistics.median(ours), statistics.median(theirs)
    print(f"{name:<42} {middle * 1e3:9.1f} {min(ours) * 1e3:9.1f} {other * 1e3:9.1f} {middle / other:7.1f}")


def main() -> int:
    """Print one row per question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caches", type=int, default=1000)
    parser.add_argument("--files", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if shutil.which("find") is None:
        parser.error("find(1) is not here (findutils)")
    os.fsync = lambda _: None  # type: ignore[assignment] - the caches need not outlive this
    with tempfile.TemporaryDirectory(prefix="ttx-benchmark-") as folder:
        places = Places(Path(folder, "s"), Path(folder, "l"), Path(folder, "cache"), Roots(), simulated=False)
        places.cache.mkdir()
        for number in range(args.caches):
            _make(places.cache, number, args.files)
        sources = Sources(places, ())
        left_out = uses(sources).unread
        if left_out:
            print(f"left out: {'; '.join(left_out)}")
            _silence(Path(folder, "bin"))
        print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors as it begins")
        report = collect(sources, keep_days=KEEP_DAYS, dry_run=True)
        ours: list[float] = []
        look: list[float] = []
        theirs: list[float] = []
        cpu: list[float] = []
        for _ in range(args.rounds):
            before = time.process_time()
            ours.append(_timed(lambda: collect(sources, keep_days=KEEP_DAYS, dry_run=True)))
            cpu.append(time.process_time() - before)
            look.append(_timed(lambda: uses(sources)))
            theirs.append(_timed(lambda: _find(places.cache)))
        print(f"{args.caches} caches of {args.files} files, {report.count('delete')} of which would be deleted")
        print(f"{'ms':<42} {'ttx':>9} {'best':>9} {'find':>9} {'ratio':>7}")
        _show("gc --dry-run, in one process", ours, theirs)
        _show("its CPU time", cpu, theirs)
        _show("asking this host for uses, once", look, theirs)
        _show("`ttx cache gc --dry-run --json`", _whole(places, Path(folder), args.rounds), theirs)
        print(f"load {os.getloadavg()[0]:.1f} as it ends")
    return 0


def _whole(places: Places, folder: Path, rounds: int) -> list[float]:
    """Time whole processes, with the byte code kept as an installed ttx has it, and the arms that ttx finds here."""
    env = {**os.environ, "TTX_CACHE": str(places.cache), "TTX_LOCKS": str(places.locks), "TTX_STATE": str(places.state)}
    env |= {"PYTHONPATH": str(HERE), "PYTHONPYCACHEPREFIX": str(folder / "byte-code")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [sys.executable, "-c", CODE, "cache", "gc", "--keep-days", str(KEEP_DAYS), "--dry-run", "--json"]

    def run() -> None:
        subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    run()
    return [_timed(run) for _ in range(rounds)]


if __name__ == "__main__":
    sys.exit(main())
