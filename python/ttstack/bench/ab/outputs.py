"""Whether two arms answer the same, and if not, by how much they differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DIGEST = re.compile(r"(?:[a-z0-9]+:)?[0-9a-f]{32,}")


@dataclass(frozen=True, slots=True)
class OtherAnswer:
    """A prompt that the two answer differently. ``first``: character at which they part; None: digests do not tell."""

    pair: int
    prompt: str
    first: int | None
    agreement: float  # share of the longer answer up to there


@dataclass(frozen=True, slots=True)
class Outputs:
    """The answers of all counted pairs. ``agreement`` is 1 when all are equal: the quality of B's, held against A's.

    ``steady_a`` and ``steady_b``: whether an arm's own answers are the same from boot to boot. Where A's are not, other
    answers of B say little.
    """

    compared: int
    same: int
    agreement: float | None  # None: nothing was compared
    steady_a: bool
    steady_b: bool
    others: tuple[OtherAnswer, ...]

    @property
    def equal(self) -> bool:
        """Whether there was something to compare, and all of it was the same."""
        return self.compared > 0 and self.same == self.compared


def compare_outputs(pairs: Sequence[tuple[int, Mapping[str, str], Mapping[str, str]]]) -> Outputs:
    """Compare what A and B answered in each pair (its number, A's answers, B's). A prompt that one lacks differs."""
    others: list[OtherAnswer] = []
    scores: list[float] = []
    for pair, a, b in pairs:
        for prompt in sorted({*a, *b}):
            found = _compare(pair, prompt, a.get(prompt), b.get(prompt))
            scores.append(1.0 if found is None else found.agreement)
            others += [] if found is None else [found]
    steady_a, steady_b = (len({tuple(sorted(side.items())) for side in sides}) <= 1 for sides in _sides(pairs))
    agreement = fmean(scores) if scores else None
    return Outputs(len(scores), len(scores) - len(others), agreement, steady_a, steady_b, tuple(others))


def _sides(
    pairs: Sequence[tuple[int, Mapping[str, str], Mapping[str, str]]],
) -> tuple[list[Mapping[str, str]], list[Mapping[str, str]]]:
    return [a for _, a, _ in pairs], [b for _, _, b in pairs]


def _compare(pair: int, prompt: str, a: str | None, b: str | None) -> OtherAnswer | None:
    if a == b:
        return None
    if a is None or b is None or (_DIGEST.fullmatch(a) and _DIGEST.fullmatch(b)):
        return OtherAnswer(pair, prompt, None, 0.0)
    first = next((at for at, (one, two) in enumerate(zip(a, b, strict=False)) if one != two), min(len(a), len(b)))
    return OtherAnswer(pair, prompt, first, first / max(len(a), len(b)))
