"""Exit 1 unless a run's closing line, on stdin, says that a suite measured all that it should and nothing was void.

How busy this machine is, is not the suite's fault: that the client itself was too slow, or the noise too large for a
drift to be told, is printed and let pass.
"""

import json
import sys
from typing import Any

CELLS = {
    "smoke": [],
    "sweep32k": [f"prompt-{size}" for size in (1024, 2048, 4096, 8192, 16384, 32768)],
    "infbench": ["b1", "c1", "c2", "c4", "c8"],
    "soak": ["mixed"],
}
NEEDLES = {"needle-1024", "needle-2048", "needle-4096"}
UNMEASURED = {"prompt-8192", "prompt-16384", "prompt-32768"}  # the arm sim takes 8192 tokens, the answer's included
BUSY = ("the client", "answers came all at once")


def faults(suite: str, line: dict[str, Any]) -> list[str]:
    """Say what is wrong with a closing line."""
    measured = line["measured"]
    if line["outcome"] != "ok" or measured is None or measured["suite"] != suite:
        return [f"outcome {line['outcome']}: {line['text']}"]
    found = [f"{measured['void']} of {measured['requests']} requests are void"] if measured["void"] else []
    cells = {cell["name"]: cell for cell in measured["cells"]}
    if list(cells) != CELLS[suite]:
        found.append(f"cells {list(cells)}")
    for name, cell in cells.items():
        found += [f"{name}: {reason}" for reason in cell["reasons"] if not any(word in reason for word in BUSY)]
        if (cell["requests"] == 0) != (name in UNMEASURED):
            found.append(f"{name}: {cell['requests']} requests, {cell['notes']}")
    checks = {check["name"]: check for check in measured["checks"]}
    busy = any(cell["reasons"] for cell in cells.values())
    for name, check in checks.items():
        let_pass = (name == "cells" and busy) or (name == "drift" and "drifts" not in check["detail"])
        if not check["ok"] and not let_pass:
            found.append(f"{name}: {check['detail']}")
    if suite == "sweep32k" and not checks.keys() >= NEEDLES:
        found.append(f"checks {list(checks)}")
    if not measured["outputs"]:
        found.append("no answers to compare")
    return found


if __name__ == "__main__":
    closing = json.load(sys.stdin)
    for reason in closing["quotable_reasons"]:
        print(f"{sys.argv[1]}: {reason}")
    wrong = faults(sys.argv[1], closing)
    sys.exit("\n".join(wrong) if wrong else 0)
