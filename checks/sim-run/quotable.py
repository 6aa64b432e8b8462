"""Exit 1 unless the closing line of a record, on stdin, says that the run went well and may be quoted."""

import json
import sys

EXPECTED = {"kind": "close", "outcome": "ok", "exit_code": 0, "quotable": True, "quotable_reasons": []}

found = {key: value for key, value in json.load(sys.stdin).items() if key in EXPECTED}
sys.exit(0 if found == EXPECTED else f"sim-run: expected {EXPECTED}, the record says {found}")
