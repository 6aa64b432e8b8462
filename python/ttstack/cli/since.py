"""Since when: a moment, or so long ago."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(text: str) -> str:
    """Read a moment for argparse, and write it as records spell times."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            moment = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-01-31 or 7d") from error
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
