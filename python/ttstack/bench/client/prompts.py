"""Prompts of exact length that no prefix cache has seen."""

from __future__ import annotations

import random

PLAIN = range(100, 197)
"""Ids that are ordinary tokens in any vocabulary of more than 256: special ones lie at either end."""


def fresh_prompt(size: int, seed: str, number: int, ids: range = PLAIN) -> tuple[int, ...]:
    """Make a prompt of ``size`` token ids, random from the first one on.

    ``seed`` is the run's own (keep it in the record), ``number`` is the request's: the same two give the same prompt,
    any others give one that shares no first block with it. Warm-up takes other numbers than what is measured.
    """
    return tuple(random.Random(f"{seed}/{number}/{size}").choices(ids, k=size))  # noqa: S311 - no secret
