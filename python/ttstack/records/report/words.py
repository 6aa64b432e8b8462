"""Names and numbers as a reader sees them."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.records.types import Json

# The longest first: a name's unit is the first of these that it ends in.
_UNITS = {
    "_requests_per_s": "requests/s",
    "_tokens_per_s": "tokens/s",
    "_ms_per_token": "ms/token",
    "_s_per_token": "s/token",
    "_per_s": "per s",
    "_share": "share",
    "_bytes": "bytes",
    "_tokens": "tokens",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
}
_NAMES = {
    "ttft": "TTFT",
    "e2e": "End to end",
    "pp": "Prefill (PP)",
    "tg": "Time per token (TG)",
    "tokens": "Throughput",
    "tpot": "TPOT",
    "goodput": "Goodput",
}
_TIME = "2026-01-31T23:59"
_LEAST, _MOST = 1e-4, 1e6  # beyond these a number is written with an exponent


def unit_of(value: str) -> tuple[str, str]:
    """Split the name of a value into what it is and its unit: ``ttft_s`` is ("TTFT", "s")."""
    ending = next((ending for ending in _UNITS if f"_{value}".endswith(ending)), "")
    stem = f"_{value}".removesuffix(ending).strip("_") or value.partition("_")[0]
    return _NAMES.get(stem, stem.replace("_", " ")), _UNITS.get(ending, "")


def heading(value: str) -> str:
    """Write the name of a value for the head of a column: ``TTFT, s``."""
    name, unit = unit_of(value)
    return f"{name}, {unit}" if unit else name


def number(value: float) -> str:
    """Write a value with four digits that count."""
    if value != 0 and not _LEAST <= abs(value) < _MOST:
        return f"{value:.3e}"
    digits = 3 - (math.floor(math.log10(abs(value))) if value else 0)
    text = f"{value:.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """Write a share as a difference: 0.031 is ``+3.1 %``; a real minus sign."""
    return f"{share * 100:+.2f} %".replace("-", "\N{MINUS SIGN}")


def counted(count: int, thing: str) -> str:
    """Write how many: ``1 run``, ``2 runs``."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def moment(time: str) -> str:
    """Write a record's time to the minute: ``2026-01-31 23:59``."""
    return time[: len(_TIME)].replace("T", " ")


def days(time: str) -> float:
    """Say when a record's time is, in days since 1970. Raises ValueError for a day that no calendar has."""
    return datetime.fromisoformat(time).timestamp() / 86400


def shape_words(shape: Mapping[str, Json], *, but: frozenset[str] = frozenset()) -> str:
    """Say what a shape holds: ``prompt tokens 1024, concurrency 8``."""
    return ", ".join(f"{text(key).replace('_', ' ')} {text(value)}" for key, value in shape.items() if key not in but)


def text(value: object) -> str:
    """Make text from elsewhere safe to be shown: no control characters, no marks that turn the direction of writing."""
    return printable(value if isinstance(value, str) else str(value))
