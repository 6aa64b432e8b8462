"""A run of an A/B that boots nothing: it writes the lines of a record, as its order and a script say.

``python ab_child.py RECORDS SCRIPT ORDER``; the script is a table of side, or of side, pair and attempt ("B", "A0.0"),
to what happens. What it does not do as a process of its own it can do within a test.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ab_kit import NO, Book, arm

from ttstack.run.ab.cell import CellReporter, end_with_owner, read_order, tell_fault
from ttstack.run.interrupts import Interrupts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.run.ab.cell import CellOrder


def found_in(script: Mapping[str, Any], order: CellOrder) -> Mapping[str, Any]:
    place = order.place
    if place is None:
        return {}
    found: Mapping[str, Any] = script.get(f"{place.side}{place.pair}.{place.attempt}") or script.get(place.side, {})
    return found


def write(book: Book, script: Mapping[str, Any], order: CellOrder, *, interrupted: bool = False) -> tuple[str, int]:
    """Write the record of a run; return its id and its exit code."""
    what, place = found_in(script, order), order.place
    this = {**arm(order.name, port=order.port, **what.get("arm", {})), "file": order.file}
    asks = {"cards": order.cards, **script.get("digests", {}).get(order.name, {})}
    more: dict[str, Any] = {"cards": order.cards, "this": this, "asks": asks}
    if what.get("refused"):
        code = int(what["refused"])
        reason = {"reason": "identity", "identity": NO} if code == 4 else {"reason": "busy"}
        return book.add(place, outcome="refused", exit_code=code, text="as the script says", **reason, **more), code
    if interrupted or what.get("interrupted"):
        return book.add(place, outcome="interrupted", exit_code=130, **more), 130
    value = what.get("value", 1.0) * (1 + 0.001 * ((0 if place is None else place.position * 7) % 5))
    return book.add(place, value, outputs=what.get("outputs"), **more), 0


def main(records: Path, script: Mapping[str, Any], order: CellOrder) -> int:
    end_with_owner(order.owner)
    what, tell = found_in(script, order), CellReporter()
    name = "-" if order.place is None else f"{order.place.side}{order.place.pair}"

    def note(text: str) -> None:
        with records.with_suffix(".log").open("a") as file:
            file.write(f"{name} {text}\n")

    with Interrupts() as interrupts:
        if what.get("says"):
            sys.stdout.write("not an event\n[1]\n")
            sys.stdout.flush()
            sys.stderr.write(f"{what['says']}\n")
        if what.get("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        if what.get("nothing"):
            tell_fault(what["nothing"], 2)
            return 2
        note("boots")
        time.sleep(what.get("boot_s", 0))
        note("booted")
        if not what.get("refused"):
            tell.begin("measure")
            note("measures")
            if what.get("kill_owner"):
                os.kill(order.owner, signal.SIGKILL)
            until = time.monotonic() + (20 if what.get("hangs") or what.get("kill_owner") else 0)
            while time.monotonic() < until and not interrupts._seen:
                time.sleep(0.01)
            tell.end("measure", ok=True, seconds=0.5)
            note("stops")
        run, code = write(Book(records, os.getpid()), script, order, interrupted=bool(interrupts._seen))
    sys.stdout.write(json.dumps({"event": "over", "run": run, "exit_code": code, "text": ""}) + "\n")
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), read_order(sys.argv[3])))
