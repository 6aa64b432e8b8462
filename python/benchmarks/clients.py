"""How wrong load generators are, and what they cost, beside the measuring client: the server's true times are known.

usage: python benchmarks/clients.py --peers FOLDER [--install] [--only NAME ...] [--rounds N]

FOLDER has a virtual environment for each other client (vllm, llama-benchy, aiperf, guidellm); --install makes what is
missing. One that is missing or does not work is skipped, with the reason. The server is tests/bench's reference
server: first token at 50 ms, then one each 5 ms, 128 tokens; errors are against its own log of the same run. Means are
of all requests. CPU is of all of a client's processes: the slope between a short and a long run at 64, and one at 1.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clients_peers import PEERS, install, own_command, tokenizer_folder

from ttstack.bench.http import Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clients_peers import Peer

ROOT = Path(__file__).resolve().parents[1]
TOKENS = 128
UNPACED_TOKENS, UNPACED_REQUESTS, UNPACED_AT = 2000, 64, 8
CONCURRENCIES = (1, 8, 32, 64)
LIMIT_S = 400


class Cell(NamedTuple):
    """One run of one client."""

    ttft_error_ms: float
    itl_error: float  # share
    cpu_s: float
    tokens: int
    to_first_s: float  # from the start of the program to its first request
    tokens_per_s: float  # as the client reports it
    all_in_tokens_per_s: float  # from the first request to the end of the program
    notes: str


@dataclass
class Bench:
    """What all runs need."""

    url: str
    tokenizer: Path
    folder: Path

    def truth(self) -> list[dict[str, Any]]:
        """Take what the server logged since the last time."""
        return list(Client.of(self.url, 30.0).get("/truth").body)

    def run(self, peer: Peer, program: Path, concurrency: int, requests: int, tokens: int = TOKENS) -> Cell:
        """Run a client once. Raises RuntimeError when it fails or asks for something else."""
        self.truth()
        out = Path(tempfile.mkdtemp(dir=self.folder))
        command = peer.command(program, f"{self.url}/pace", self.tokenizer, out, (concurrency, requests, tokens))
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=out, env=_environment()
        )
        end, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        log = self.truth()
        asked = [entry for entry in log if entry["asked"] == tokens and len(entry["token_at"]) == tokens]
        if done.returncode != 0 or len(asked) < requests:
            said = " ".join((done.stderr + done.stdout)[-400:].split())
            raise RuntimeError(f"exit {done.returncode}, {len(asked)} of {requests} requests: {said}")
        reported = peer.read(out, done.stdout)
        ttft = statistics.fmean(entry["shown_at"][0] - entry["arrived"] for entry in asked)
        itl = statistics.fmean((entry["token_at"][-1] - entry["token_at"][0]) / (tokens - 1) for entry in asked)
        first, made = min(entry["arrived"] for entry in log), sum(len(entry["token_at"]) for entry in log)
        return Cell(
            reported.ttft_ms - ttft * 1e3,
            reported.itl_ms / itl / 1e3 - 1 if itl else 0.0,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            made,
            first - begin,
            reported.tokens_per_s,
            requests * tokens / (end - first),
            reported.notes,
        )


def _environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests/bench"), str(ROOT / "benchmarks")])
    return {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1", "TOKENIZERS_PARALLELISM": "false"}


@contextmanager
def serving(*words: str) -> Iterator[str]:
    command = [sys.executable, str(ROOT / "tests/bench/reference_server.py"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as server:
        assert server.stdout is not None  # noqa: S101 - asked for above
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@contextmanager
def book(folder: Path) -> Iterator[str]:
    """Serve a text, which llama-benchy takes its prompts from."""
    words = [name for name in sys.stdlib_module_names for _ in range(40)]
    (folder / "book.txt").write_text("\n".join(" ".join(words[at : at + 12]) for at in range(0, len(words), 12)))
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/book.txt"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        pass


def _programs(folder: Path | None, only: Sequence[str], *, wanted: bool) -> dict[str, Path]:
    """Find the clients; say why one is skipped."""
    found = {"ttx": Path(sys.executable)}
    for peer in PEERS:
        if only and peer.name not in only:
            continue
        if folder is None:
            print(f"{peer.name}: skipped, no --peers folder")
            continue
        program = folder / peer.name / "bin" / peer.program
        why = install(peer, folder) if wanted and not program.exists() else ""
        if not program.exists():
            print(f"{peer.name}: skipped, there is no {program} {why}")
        else:
            found[peer.name] = program
    return found


def _tried(bench: Bench, peer: Peer, program: Path, *asked: int) -> Cell | None:
    try:
        return bench.run(peer, program, *asked)
    except (RuntimeError, OSError, subprocess.TimeoutExpired, KeyError, ValueError) as error:
        print(f"{peer.name} at {asked[0]}: skipped, {str(error)[:500]}")
        return None


def _paced(bench: Bench, peers: Sequence[Peer], programs: dict[str, Path], rounds: int) -> None:
    print(f"{'client':<14}{'at':>4}{'TTFT error ms':>15}{'x ours':>8}{'ITL error %':>13}{'to first s':>12}")
    ours: dict[int, float] = {}
    for concurrency in CONCURRENCIES:
        for peer in peers:
            requests = 8 * concurrency
            cells = [_tried(bench, peer, programs[peer.name], concurrency, requests) for _ in range(rounds)]
            good = [cell for cell in cells if cell is not None]
            if not good:
                continue
            ttft = statistics.median(cell.ttft_error_ms for cell in good)
            itl = statistics.median(cell.itl_error for cell in good)
            first = statistics.median(cell.to_first_s for cell in good)
            ours.setdefault(concurrency, ttft)
            ratio = abs(ttft / ours[concurrency])
            print(f"{peer.name:<14}{concurrency:>4}{ttft:>+15.2f}{ratio:>8.1f}{itl * 100:>+13.3f}{first:>12.2f}")
            if notes := {cell.notes for cell in good} - {""}:
                print(f"{'':<14}{'; '.join(sorted(notes))}")


def _cost(bench: Bench, peers: Sequence[Peer], programs: dict[str, Path]) -> None:
    print(f"\n{'client':<14}{'CPU s / 1000 tokens':>20}{'x ours':>8}{'CPU s, 16 at 1':>16}")
    ours = 0.0
    for peer in peers:
        program = programs[peer.name]
        short, long = (_tried(bench, peer, program, 64, requests) for requests in (128, 512))
        small = _tried(bench, peer, program, 1, 16)
        if short is None or long is None or small is None:
            continue
        cost = (long.cpu_s - short.cpu_s) / (long.tokens - short.tokens) * 1000
        ours = ours or cost
        print(f"{peer.name:<14}{cost:>20.4f}{cost / ours:>8.1f}{small.cpu_s:>16.2f}")


def _unpaced(bench: Bench, peers: Sequence[Peer], programs: dict[str, Path]) -> None:
    print(f"\n{'client':<14}{'tokens/s, reported':>20}{'until its end':>15}{'x ours':>8}")
    ours = 0.0
    for peer in peers:
        cell = _tried(bench, peer, programs[peer.name], UNPACED_AT, UNPACED_REQUESTS, UNPACED_TOKENS)
        if cell is not None:
            ours = ours or cell.tokens_per_s
            ratio = cell.tokens_per_s / ours
            print(f"{peer.name:<14}{cell.tokens_per_s:>20,.0f}{cell.all_in_tokens_per_s:>15,.0f}{ratio:>8.2f}")
            if cell.notes:
                print(f"{'':<14}{cell.notes}")


def main() -> int:
    """Print one table per question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=1)
    words = parser.parse_args()
    programs = _programs(words.peers.resolve() if words.peers else None, words.only, wanted=words.install)
    peers = [own_command(), *(peer for peer in PEERS if peer.name in programs)]
    with tempfile.TemporaryDirectory(prefix="ttx-clients-") as name:
        folder = Path(name)
        tokenizer = tokenizer_folder(folder, [program for peer, program in programs.items() if peer != "ttx"])
        with book(folder) as text:
            os.environ["TTX_BENCH_BOOK"] = text
            with serving() as url:
                bench = Bench(url, tokenizer, folder)
                _paced(bench, peers, programs, words.rounds)
                _cost(bench, peers, programs)
            with serving("--first", "0", "--each", "0") as url:
                _unpaced(Bench(url, tokenizer, folder), peers, programs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
