"""The text of a page /metrics (Prometheus, exposition formats 0.0.4), and what two readings of it say.

A counter begins anew when its server does. Then, and whenever the series of two readings are not the same ones, the
increase between them is not known: a guess would be a number that nobody served.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Labels = tuple[tuple[str, str], ...]
"""Names and values of a series' labels, sorted by name."""

Page = Mapping[str, Mapping[Labels, float]]
"""Name of a metric -> its series -> their values."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,?)[ \t]*')
_VALUE = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n"}  # a quote and a backslash stand for themselves


def read_page(text: str, wanted: Collection[str]) -> Page:
    """Read the series of the metrics that are wanted; lines that are none are passed over.

    Of a series that stands there twice the last counts.
    """
    page: dict[str, dict[Labels, float]] = {}
    for line in text.split("\n"):
        found = _NAME.match(line)
        if found is None or found[0] not in wanted:
            continue  # most lines: a page of vLLM has a thousand
        sample = _sample(line, found.end())
        if sample is not None:
            page.setdefault(found[0], {})[sample[0]] = sample[1]
    return page


def _sample(line: str, at: int) -> tuple[Labels, float] | None:
    """Read what stands behind a name: labels, value, a time or an exemplar that do not matter here."""
    labels: list[tuple[str, str]] = []
    rest = line[at:].lstrip(" \t")
    if rest.startswith("{"):
        at, more = 1, True
        while more and (found := _LABEL.match(rest, at)) is not None:
            labels.append((found[1], _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), found[2])))
            at, more = found.end(), bool(found[3])
        rest = rest[at:].lstrip(" \t")
        if not rest.startswith("}"):
            return None
        rest = rest[1:]
    words = rest.split(maxsplit=1)
    if not words or _VALUE.fullmatch(words[0]) is None:
        return None
    return tuple(sorted(labels)), float(words[0])


def total(page: Page, *names: str) -> float | None:
    """Add up all series of the first of these metrics that is there; None when none is, or one is no number."""
    series = _series(page, names)
    return sum(series.values()) if series and all(map(math.isfinite, series.values())) else None


def largest(page: Page, *names: str) -> float | None:
    """Give the largest of all series of the first of these metrics that is there; None as ``total``."""
    series = _series(page, names)
    return max(series.values()) if series and all(map(math.isfinite, series.values())) else None


def increase(before: Page, after: Page, *names: str) -> float | None:
    """Say by how much a counter rose, all its series added up; None when that is not known.

    That is when there is none, when one is no number, when one fell, and when they are not the same ones.
    """
    rises = _rises(_series(before, names), _series(after, names))
    return None if rises is None else sum(rises.values())


def quantile(before: Page, after: Page, share: float, *names: str) -> float | None:
    """Estimate a quantile (0 to 1) of what a histogram counted between two readings; None when that was nothing.

    As Prometheus' histogram_quantile: linear within a bucket, of which the first begins at 0, and the last finite bound
    where the value lies beyond it. ``before`` may be ``{}``: since the server began.
    """
    return bucket_quantile(_buckets(before, after, names), share)


def mean(before: Page, after: Page, *names: str) -> float | None:
    """Give the mean of what a histogram counted between two readings; None as ``quantile``."""
    for name in names:
        if f"{name}_count" in after:
            count = increase(before, after, f"{name}_count")
            added = increase(before, after, f"{name}_sum")
            return added / count if count and added is not None else None
    return None


def bucket_quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """Estimate a quantile from cumulative counts by upper bound, the last of which is infinite; see ``quantile``."""
    if not 0 <= share <= 1:
        raise ValueError(f"{share} is no share")
    if not buckets or not math.isinf(buckets[-1][0]) or not buckets[-1][1] > 0:
        return None
    rank = share * buckets[-1][1]
    low, below = (0.0, 0.0) if buckets[0][0] > 0 else buckets[0]
    for bound, count in buckets:
        if count >= rank and count > 0:
            if math.isinf(bound):
                break
            inside = (rank - below) / (count - below) if count > below else 1.0
            return min(bound, low + (bound - low) * max(0.0, inside))
        low, below = bound, count
    finite = [bound for bound, _ in buckets if not math.isinf(bound)]
    return finite[-1] if finite else None


def _series(page: Page, names: Sequence[str]) -> Mapping[Labels, float]:
    return next((page[name] for name in names if page.get(name)), {})


def _rises(before: Mapping[Labels, float], after: Mapping[Labels, float]) -> dict[Labels, float] | None:
    if not after or before.keys() != after.keys():
        return None
    rises = {labels: value - before[labels] for labels, value in after.items()}
    return rises if all(math.isfinite(rise) and rise >= 0 for rise in rises.values()) else None


def _buckets(before: Page, after: Page, names: Sequence[str]) -> list[tuple[float, float]]:
    """Add up a histogram's buckets over its series, what was counted between two readings; none when not known."""
    full = [f"{name}_bucket" for name in names]
    new = _series(after, full)
    rises = _rises(_series(before, full) if before else dict.fromkeys(new, 0.0), new)
    counts: dict[float, float] = {}
    for labels, rise in (rises or {}).items():
        bound = dict(labels).get("le", "")
        if _VALUE.fullmatch(bound) is None:
            return []
        counts[float(bound)] = counts.get(float(bound), 0.0) + rise
    found = sorted(counts.items())
    if any(math.isnan(bound) for bound, _ in found):
        return []
    # A server that counts on while it writes may give a later bucket less than an earlier one.
    return list(zip((bound for bound, _ in found), accumulate((count for _, count in found), max), strict=True))
