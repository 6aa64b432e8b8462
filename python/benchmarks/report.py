"""How long a report of many records takes, as a whole process, beside what others do with the same numbers.

usage: python benchmarks/report.py [--records 1000] [--rounds 5] [--matplotlib PYTHON]

``pygal alone`` draws the same charts from numbers that are at hand: no records are read and no page is made.
``matplotlib`` draws as many charts of as many points to SVG, where it can be imported. Rounds are interleaved.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests" / "records")]

from report_kit import load, run_lines, sweep  # noqa: E402 - see the line above

from ttstack.records.report.gather import gather  # noqa: E402
from ttstack.records.store import Store  # noqa: E402

_PYGAL = """
import pickle, sys
import pygal
for kind, series in pickle.load(open(sys.argv[1], "rb")):
    chart = getattr(pygal, kind)(js=())
    for name, points in series:
        chart.add(name, points)
    chart.render()
"""
_MATPLOTLIB = """
import io, pickle, sys
import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot
for kind, series in pickle.load(open(sys.argv[1], "rb")):
    figure, axes = pyplot.subplots()
    for at, (name, points) in enumerate(series):
        if kind == "XY":
            axes.plot([x for x, _ in points], [y for _, y in points], "o-", label=name)
        else:
            axes.barh(range(len(points)), points, label=name)
    figure.savefig(io.StringIO(), format="svg")
    pyplot.close(figure)
"""


def write_records(path: Path, count: int) -> None:
    """Write records of four arms, changed every hundred runs."""
    noise = random.Random(1)  # noqa: S311 - noise that is the same each time
    with path.open("wb") as file:
        for at in range(count):
            measured = sweep(noise) if at % 2 else load(noise)
            arm = ("prod", "prod-prefix", "trial", "sim")[at // 2 % 4]
            identity = {"identity": None} if at % 10 == 0 else {}
            lines = run_lines(at, arm, measured, pin=f"pin-{at // 100}", simulated=arm == "sim", **identity)
            file.writelines(lines)


def drawn(path: Path) -> list[tuple[str, list[tuple[str, list[object]]]]]:
    """Give the numbers of the charts of that report."""
    report = gather(Store(path).read().runs, title="t")
    found: list[tuple[str, list[tuple[str, list[object]]]]] = []
    for figure in (*report.sweeps, *report.loads):
        curves = [(curve.source.label, [(x, s.median) for x, s in curve.points]) for curve in figure.curves]
        found.append(("XY", [(name, list(points)) for name, points in curves]))
    found += [
        ("XY", [(trend.arm, [(at, point.value) for at, point in enumerate(trend.points)])]) for trend in report.trends
    ]
    phases = dict.fromkeys(phase for boot in report.boots for phase, _ in boot.phases)
    found.append(("HorizontalStackedBar", [(phase, [boot.of(phase) for boot in report.boots]) for phase in phases]))
    return found


def _cpu() -> float:
    """Say how long the CPUs worked for processes that ended, which a busy machine does not change much."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print seconds of the whole process, and the ratio to pygal alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--matplotlib", default=sys.executable, metavar="PYTHON", help="one that has matplotlib")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records, numbers = Path(folder, "records.jsonl"), Path(folder, "numbers.pickle")
        write_records(records, args.records)
        charts = drawn(records)
        numbers.write_bytes(pickle.dumps(charts))
        ttx = [sys.executable, "-c", "from ttstack.cli.main import entry; entry()", "report", str(records)]
        contestants = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "ttx report (html)": [*ttx, "-o", str(Path(folder, "r.html"))],
            "ttx report (md)": [*ttx, "-o", str(Path(folder, "r.md"))],
            "ttx report (json)": [*ttx, "--json"],
            "pygal alone": [sys.executable, "-c", _PYGAL, str(numbers)],
        }
        has = [args.matplotlib, "-c", "import matplotlib"]
        if subprocess.run(has, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            contestants["matplotlib"] = [args.matplotlib, "-c", _MATPLOTLIB, str(numbers)]
        else:
            print("matplotlib: not here")
        times: dict[str, list[float]] = {name: [] for name in contestants}
        busy: dict[str, list[float]] = {name: [] for name in contestants}
        env = {**os.environ, "PYTHONPATH": str(PROJECT)}
        for _ in range(args.rounds + 1):  # the first one warms up
            for name, command in contestants.items():
                begin, before = time.perf_counter(), _cpu()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
                times[name].append(time.perf_counter() - begin)
                busy[name].append(_cpu() - before)
        points = sum(len(points) for _, series in charts for _, points in series)
        size = Path(folder, "r.html").stat().st_size
        print(
            f"{args.records} records, {records.stat().st_size / 1e6:.1f} MB; {len(charts)} charts of {points} points;"
        )
        print(f"page {size / 1e6:.2f} MB; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
        base = statistics.median(busy["pygal alone"][1:])
        print(f"{'whole process':<20} {'median s':>9} {'best s':>8} {'CPU s':>8} {'CPU x pygal':>12}")
        for name, values in times.items():
            cpu = statistics.median(busy[name][1:])
            middle, best = statistics.median(values[1:]), min(values[1:])
            print(f"{name:<20} {middle:9.3f} {best:8.3f} {cpu:8.3f} {cpu / base:12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
