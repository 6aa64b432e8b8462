"""How long ``ttx records`` takes over thousands of runs, beside what people use for JSON lines today.

usage: python benchmarks/records.py [--runs N] [--rounds N]

The runs are those of ``ttx run sim``, one real pair of lines with other names. Rounds are interleaved (a slow moment of
the machine hits all alike); the best of each is printed, by the clock and of
the CPU, and its ratio to ``ttx records ls``. ``python: json`` parses
each line and prints twenty; ``jq`` does the same, and takes part when it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ttstack.records.store import Store, encode

TTX = [sys.executable, "-c", "from ttstack.cli.main import entry; entry()"]
_PARSE = """
import json, sys
lines = []
for raw in open(sys.argv[1], "rb"):
    try:
        lines.append(json.loads(raw))
    except ValueError:
        pass
for line in [line for line in lines if line["kind"] == "open"][-20:]:
    print(line["run"], line["time"], line["arm"])
"""


def _make(folder: Path, count: int) -> Path:
    """Run the simulated engine once, and write its two lines so many times."""
    env = {**os.environ, "TTX_STATE": str(folder / "one")}
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    arm = folder / "one.toml"
    arm.write_text(f'schema = 1\nextends = "sim"\n\n[engine]\nport = {port}\n')
    done = subprocess.run([*TTX, "run", str(arm)], env=env, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"`ttx run sim` is needed first, and says: {done.stderr[-500:]}")
    run = Store(folder / "one" / "records.jsonl").read().runs[0]
    halves = [dict(half or {}) for half in (run.raw_open, run.raw_close)]
    path = folder / "records.jsonl"
    with path.open("wb") as file:
        for number in range(count):
            for at, half in enumerate(halves):
                file.write(encode({**half, "run": f"{run.id}-{number}", "id": f"{2 * number + at:032x}"}))
    return path


def _seconds(command: list[str]) -> tuple[float, float]:
    """Run it; return seconds by the clock and of the CPU."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _contestants(path: Path) -> dict[str, list[str]]:
    def records(*words: str) -> list[str]:
        return [*TTX, "records", *words, "--records", str(path)]

    found = {
        "ttx records ls": records("ls"),
        "ttx records ls --quotable --since 7d": records("ls", "--quotable", "--since", "7d"),
        "ttx records ls -n 0": records("ls", "-n", "0"),
        "ttx records show": records("show"),
        "ttx records verify": records("verify"),
        "ttx records query 'count by arm'": records("query", "SELECT arm, count(*) FROM runs GROUP BY arm"),
        "python: json": [sys.executable, "-c", _PARSE, str(path)],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    jq = shutil.which("jq")
    if jq:
        filter_ = 'select(.kind == "open") | [.run, .time, .arm] | @tsv'
        found["jq"] = [jq, "-r", filter_, str(path)]
    return found


def main() -> int:
    """Print one row per command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = _make(Path(folder), args.runs)
        print(json.dumps({"runs": args.runs, "lines": 2 * args.runs, "bytes": path.stat().st_size}))
        contestants = _contestants(path)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
        for _ in range(args.rounds):
            for name, command in contestants.items():
                times[name].append(_seconds(command))
    best = {name: tuple(map(min, zip(*values, strict=True))) for name, values in times.items()}
    wall, cpu = best["ttx records ls"]
    print(f"{'command':<40} {'best s':>8} {'x ls':>7} {'CPU s':>8} {'x ls':>7}")
    for name, (seconds, busy) in best.items():
        print(f"{name:<40} {seconds:8.3f} {seconds / wall:7.2f} {busy:8.3f} {busy / cpu:7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
