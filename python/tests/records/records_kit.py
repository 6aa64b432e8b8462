"""Records for tests, and a writer that is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import ttstack
from ttstack.arm.digest import arm_digest, model_digest, pin_digest
from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.records.build import closing, jsonable, opening
from ttstack.records.context import AbPlace, HostFacts, HostState, Tool
from ttstack.records.seal import seal
from ttstack.records.statistics import summarise
from ttstack.records.store import encode
from ttstack.records.types import (
    AskedRecord,
    CacheAsked,
    CacheWork,
    CardSeen,
    Cell,
    ClientSeen,
    Identity,
    IdentityCheck,
    Measured,
    MeasuredCheck,
    Observed,
    Owner,
    Phase,
)

if TYPE_CHECKING:
    from ttstack.records.types import Json

OWNER = Owner(pid=4242, start=99, boot_id="b-1")
STATE = HostState((0.5, 0.25, 0.125), 4_000_000_000, "performance", 900_000_000_000, clock_synchronised=True)
HOST = HostFacts("cardhost", "b-1", "6.12.0", 2, "some cpu", 8_000_000_000, "3.11.2", STATE)
TOOL = Tool("ttx", "0.1.0", "git", "/src/ttstack", "c" * 40, "d" * 64)
AB = AbPlace("ab-1", 4, "tpot_s", other_outputs=False, pair=0, side="A", order="ab", position=0, attempt=0)
IDENTITY = Identity((IdentityCheck("served_root", ok=True, expected="/m", found="/m"),))
CELL = Cell(
    "prefill 1024",
    {"prompt_tokens": 1024, "concurrency": 1},
    values={"ttft_s": (0.25, 0.5)},
    stats={"ttft_s": summarise((0.25, 0.5))},
    requests=2,
    client=ClientSeen(seconds=1.0, cpu_share=0.1, lag_p99_s=0.001),
)
MEASURED = Measured(
    "smoke",
    (MeasuredCheck("long_prompt", ok=True),),
    {"request_s": (0.25, 0.5)},
    requests=2,
    cells=(CELL,),
    settings={"seed": 7},
)
OBSERVED = Observed(
    (CardSeen("a1", "0000:01:00.0", "/dev/tenstorrent/0", "a1", "19.13.1.0", "2.10.1", "p150a", 0),),
    ("up",),
    "/m",
    4096,
    17,
    cache="cold",
    cache_work=CacheWork("0123456789abcdef", 1.5, 4096, "fedcba9876543210", 1024, "w1: it is empty"),
)


def asked(arm: dict[str, Json] | None = None) -> AskedRecord:
    return AskedRecord(
        arm_digest="a" * 64,
        pin_digest="b" * 64,
        model_digest="c" * 64,
        arm=arm or {"name": "sim"},
        pin={"name": "sim"},
        model={"name": "tiny"},
        cards=(),
        card_count=1,
        cache=CacheAsked("0123456789abcdef", {"version": 1}),
        argv=("ttx-sim", "serve", "/m"),
        secrets=("HF_TOKEN",),
        suite="smoke",
    )


SHELF = find_shelf(Path(__file__).resolve().parents[3] / "arms", {}, Path("/"))


def true_asked(name: str = "sim") -> AskedRecord:
    """Ask for an arm of the project, with its true digests."""
    what = load(name, SHELF)
    key = cache_key(what)
    tables: Any = {part: jsonable(getattr(what, part)) for part in ("arm", "pin", "model")}
    inputs: Any = jsonable(key.inputs)
    return replace(
        asked(),
        arm_digest=arm_digest(what),
        pin_digest=pin_digest(what.pin),
        model_digest=model_digest(what.model),
        cache=CacheAsked(key.key, inputs),
        **tables,
    )


def open_line(run: str = "r-1", **change: Any) -> dict[str, Json]:  # noqa: ANN401 - any field
    values = {
        "verb": "run",
        "arm": "sim",
        "asked": asked(),
        "owner": OWNER,
        "host": HOST,
        "simulated": True,
        "tool": TOOL,
    }
    return opening(run=run, **{**values, **change})


def close_line(run: str = "r-1", **change: Any) -> dict[str, Json]:  # noqa: ANN401 - any field
    values = {
        "outcome": "ok",
        "exit_code": 0,
        "phases": (
            Phase("boot", 1.5, "2026-01-31T23:59:59.123Z"),
            Phase("measure", 0.25, "2026-02-01T00:00:00.623Z"),
        ),
        "observed": OBSERVED,
        "identity": IDENTITY,
        "measured": MEASURED,
    }
    return closing(run=run, **{**values, **change})


def written(line: dict[str, Json]) -> dict[str, Any]:
    """Give a line as it is in the file, that is with its sum."""
    return cast("dict[str, Any]", json.loads(encode(line)))


def forged(run: str) -> bytes:
    """Spell an opening line that is not of the schema, with a sum that holds."""
    line = {**open_line(run), "host": 1}
    return seal(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())


def start_python(code: str, *args: str) -> subprocess.Popen[bytes]:
    """Run a script that can import both ttstack and this kit; it prints a line when it is about to begin."""
    path = os.pathsep.join(
        [str(Path(ttstack.__file__).parents[1]), str(Path(__file__).parent), *filter(None, sys.path)]
    )
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", code, *args], env=env, stdout=subprocess.PIPE)
