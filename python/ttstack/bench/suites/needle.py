"""A needle in a haystack of exact length: one sentence with a number, somewhere in a prompt, that must be told again.

The prompt is made of token ids: sentences are tokenized by the server itself (/tokenize of vLLM or llama.cpp), one by
one, and put together to the exact length. A real model is asked by the beginning of a sentence that it goes on with, so
that no chat template is needed. The simulated engine understands nothing, but repeats what follows ``Repeat exactly:``
wherever that stands in its prompt: there this stands before the number, in the haystack. That shows that the whole
prompt arrived, and no more; which of the two was asked is in the record's settings (``needle_rule``). A server that has
no tokenizer, or whose answer is void, was not told the needle: the check does not hold then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.bench.client.types import Ask, Closed
from ttstack.bench.errors import BenchError
from ttstack.bench.http import Client
from ttstack.bench.suites.tokenizer import tokenize
from ttstack.records.types import MeasuredCheck

if TYPE_CHECKING:
    from ttstack.bench.suites.session import Session, Target

ANSWER_TOKENS = 24
DEPTH_SHARE = 0.4  # of the haystack before the needle
_PLACES = ("harbour", "station", "garden", "market", "library", "bridge", "valley", "quarry", "orchard", "mill")
_DOINGS = ("was repaired in", "is closed every", "was painted before", "opens late in", "was photographed in")
_TIMES = ("spring", "summer", "autumn", "winter", "March", "October")
HAY = tuple(f" The {place} {doing} {time}." for place in _PLACES for doing, time in zip(_DOINGS, _TIMES, strict=False))
_QUESTION = "\nThe number of the archive, as it was told above, is"


@dataclass(frozen=True, slots=True)
class Needles:
    """What prompts are put together from, as token ids."""

    lead: tuple[int, ...]  # what the tokenizer puts before any text
    hay: tuple[tuple[int, ...], ...]
    question: tuple[int, ...]


def needle_rule(target: Target) -> str:
    """Say how the needle is asked for."""
    return "echo" if target.simulated else "question"


def sentence(target: Target, number: str) -> str:
    """Write the needle."""
    return f" Repeat exactly: {number}." if target.simulated else f" The number of the archive is {number}."


def prepare(target: Target, timeout_s: float) -> Needles:
    """Tokenize what prompts are made of. Raises BenchError when the server has no tokenizer."""
    client = Client(target.endpoint, timeout_s)
    hay = tuple(tokenize(client, target.model, text) for text in HAY)
    special = tokenize(client, target.model, HAY[0], special=True)
    lead = special[: len(special) - len(hay[0])] if special[-len(hay[0]) :] == hay[0] else ()
    return Needles(lead, hay, tokenize(client, target.model, _QUESTION))


def haystack(needles: Needles, needle: tuple[int, ...], size: int, seed: str) -> tuple[int, ...] | None:
    """Put a prompt of ``size`` tokens together, the needle whole inside; None when it is too short for that."""
    room = size - len(needles.lead) - len(needle) - len(needles.question)
    if room < len(needles.hay[0]):
        return None
    draw = random.Random(f"{seed}/hay/{size}")  # noqa: S311 - no secret
    hay: list[int] = []
    while len(hay) < room:
        hay += draw.choice(needles.hay)
    at = int(room * DEPTH_SHARE)
    return (*needles.lead, *hay[:at], *needle, *hay[at:room], *needles.question)


def find_needle(session: Session, needles: Needles | str, size: int) -> MeasuredCheck:
    """Ask for the needle in a prompt of ``size`` tokens. ``needles`` may be the reason why there are none."""
    name = f"needle-{size}"
    if isinstance(needles, str):
        return _untold(name, needles)
    target = session.target
    number = str(random.Random(f"{session.seed}/needle/{size}").randrange(100_000, 1_000_000))  # noqa: S311 - no secret
    try:
        client = Client(target.endpoint, session.timeout_s)
        prompt = haystack(needles, tokenize(client, target.model, sentence(target, number)), size, session.seed)
        if prompt is None:
            return _untold(name, f"{size} tokens are too few for a question", number)
        ask = Ask(target.model, prompt, ANSWER_TOKENS, may_hit_cache=True, extra=target.extra, label=name)
        (result,) = session.load([ask], Closed(1)).results
    except BenchError as error:
        return _untold(name, error.message, number)
    if result.void is not None:
        return _untold(name, f"{result.void.reason.value}: {result.void.detail}", number)
    ok = number in result.text
    return MeasuredCheck(name, ok, "" if ok else "not found in the answer", number, result.text)


def _untold(name: str, why: str, number: str | None = None) -> MeasuredCheck:
    return MeasuredCheck(name, ok=False, detail=f"not told: {why}", expected=number)
