"""How long it takes to begin a cache of many files with those of another, beside `cp -al` and `cp -a`.

usage: python benchmarks/seeding.py [--files N] [--bytes N] [--rounds N] [--folder DIR] [--no-copies]

Medians and bests in ms, of the clock and of the processor's time, and the ratios of the medians to the tool that does
the same. Rounds are interleaved. What ttx
does more than cp is in its time: it reads the manifest, compares each file with it, keeps some content of the seeds,
and writes down what was put.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cache.manifest import scan, write_manifest
from ttstack.cache.marker import key_of, write_marker
from ttstack.cache.seed import seed
from ttstack.cache.types import Builder, Marker, State
from ttstack.host.process import boot_id, myself

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDERS = 64
Took = tuple[float, float]


def _cache(root: Path, name: str, state: State) -> Path:
    inputs: dict[str, object] = {"name": name}
    folder = root / key_of(inputs)
    folder.mkdir(parents=True)
    who = Builder("run", "arm", "user", myself(), boot_id(), Path("/proc/self/ns/pid").stat().st_ino)
    write_marker(folder, Marker(folder.name, inputs, state, who, "2030-01-01T00:00:00Z"))
    return folder


def _source(root: Path, files: int, size: int) -> Path:
    folder = _cache(root, "source", "complete")
    content = os.urandom(size)
    for at in range(files):
        place = folder / "P150x2" / "tensor_cache_bfp8" / f"part{at % FOLDERS}"
        if at < FOLDERS:
            place.mkdir(parents=True)
        (place / f"layers.{at}.feed_forward.w1_dtype_BFLOAT8_B_layout_TILE.bin").write_bytes(content)
    write_manifest(folder, scan(folder))
    return folder


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _timed(action: Callable[[], object]) -> Took:
    """Time an action, and the processor's part of it, in ms."""
    begin, used = time.perf_counter(), _cpu()
    action()
    return (time.perf_counter() - begin) * 1000, (_cpu() - used) * 1000


def _ttx(source: Path, at: str, *, by_rename: bool) -> Took:
    target = _cache(source.parent, at, "building")
    took = _timed(lambda: seed(source, target, by_rename=by_rename))
    shutil.rmtree(target)
    return took


def _cp(source: Path, option: str) -> Took:
    target = source.parent / "copy"
    took = _timed(lambda: subprocess.run(["cp", option, source, target], check=True))
    shutil.rmtree(target)
    return took


def _row(name: str, times: list[Took], against: list[Took] | None = None) -> None:
    cells = [f"{name:20}"]
    for at in (0, 1):
        mine = [took[at] for took in times]
        theirs = [took[at] for took in against or times]
        ratio = f"{statistics.median(mine) / statistics.median(theirs):.2f}" if against else ""
        cells.append(f"{statistics.median(mine):10.1f}{min(mine):10.1f}{ratio:>8}")
    print("".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--no-copies", action="store_true", help="links only: copies of many files take long")
    args = parser.parse_args()
    times: dict[str, list[Took]] = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        source = _source(Path(folder), args.files, args.bytes)
        os.sync()
        rounds: dict[str, Callable[[str], Took]] = {
            "cp -al": lambda _: _cp(source, "-al"),
            "ttx, hard links": lambda at: _ttx(source, at, by_rename=True),
            "cp -a": lambda _: _cp(source, "-a"),
            "ttx, copies": lambda at: _ttx(source, at, by_rename=False),
        }
        if args.no_copies:
            rounds = {name: action for name, action in rounds.items() if name in {"cp -al", "ttx, hard links"}}
        for at in range(args.rounds):
            for name, action in rounds.items():
                times.setdefault(name, []).append(action(f"{name}{at}"))
    print(f"{args.files} files of {args.bytes} bytes, {args.rounds} rounds, {os.cpu_count()} cores")
    print(f"{'':20}{'median':>10}{'best':>10}{'ratio':>8}{'CPU':>10}{'best':>10}{'ratio':>8}")
    _row("cp -al", times["cp -al"])
    _row("ttx, hard links", times["ttx, hard links"], times["cp -al"])
    if args.no_copies:
        return
    _row("cp -a", times["cp -a"])
    _row("ttx, copies", times["ttx, copies"], times["cp -a"])


if __name__ == "__main__":
    main()
