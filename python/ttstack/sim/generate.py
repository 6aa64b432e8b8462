"""The text: a function of the prompt, the loaded tensors and, above temperature 0, of a seed."""

from __future__ import annotations

import codecs
import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.sim import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ECHO = "Repeat exactly: "
"""A prompt with this text is answered with all that follows it."""

# Words that are not ASCII make characters of several tokens, which a stream must not cut.
_WORDS = tuple(
    tokens.encode(f"{word} ")
    for word in (
        *("balo", "mire", "tasu", "venko", "pidu", "rafe", "golim", "suna", "keto", "wabi", "huno", "jide", "zuka"),
        *("café", "naïve", "größe", "温度", "模型", "тест", "λόγος", "🙂", "🚀", "loma,", "fedi.", "quno;\n", "(rima)"),
    )
)
_MIN_WORDS, _SPREAD = 12, 40
_BATCH = struct.Struct("<8I")


@dataclass(frozen=True, slots=True)
class Ask:
    """What decides an answer. Lengths in tokens."""

    prompt: tuple[int, ...]
    text: str  # in which ECHO is looked for: the whole prompt, or the last message
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    stop: tuple[str, ...]
    salt: bytes  # empty at temperature 0


@dataclass(frozen=True, slots=True)
class Twist:
    """Faults that change an answer."""

    no_stop: bool = False
    bad_unicode: bool = False
    other_start: bool = False  # the first token is another


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. ``ends[i]``: how many characters of ``text`` can be shown once token i is there."""

    text: str
    ends: tuple[int, ...]
    finish_reason: str  # stop or length
    stop_reason: str | None  # the stop string that was met

    @property
    def count(self) -> int:
        """Number of tokens, the end token included, as vLLM counts."""
        return len(self.ends)


def _numbers(seed: bytes) -> Iterator[int]:
    block = 0
    while True:
        yield from _BATCH.unpack(hashlib.sha256(seed + block.to_bytes(8, "little")).digest())
        block += 1


def _tokens(ask: Ask, fingerprint: bytes) -> Iterator[int]:
    """Tokens of the answer, without a limit; EOS stands wherever the model would end."""
    echo = ask.text.find(ECHO)
    if echo >= 0:
        yield from tokens.encode(ask.text[echo + len(ECHO) :])
        yield tokens.EOS
    prompt = struct.pack(f"<{len(ask.prompt)}I", *ask.prompt)
    numbers = _numbers(hashlib.sha256(fingerprint + ask.salt + prompt).digest())
    while True:
        for _ in range(_MIN_WORDS + next(numbers) % _SPREAD):
            yield from _WORDS[next(numbers) % len(_WORDS)]
        yield tokens.EOS


def _stopped(text: str, start: int, stop: Sequence[str]) -> tuple[int, str] | None:
    """Place and text of the first stop string at or after ``start``."""
    found = [(at, word) for word in stop if (at := text.find(word, start)) >= 0]
    return min(found, key=lambda hit: hit[0]) if found else None


def _other(token: int) -> int:
    return ord("Y") if token == ord("X") else ord("X")


def answer(ask: Ask, fingerprint: bytes, twist: Twist) -> Answer:
    """Make the whole answer."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    stop = () if twist.no_stop else ask.stop
    longest = max(map(len, stop), default=0)
    ends: list[int] = []
    text, reason = "", "length"
    for token in _tokens(ask, fingerprint):
        if len(ends) == ask.max_tokens:
            break
        if token == tokens.EOS:
            if ask.ignore_eos or len(ends) < ask.min_tokens:
                continue
            ends.append(len(text))
            reason = "stop"
            break
        shown = _other(token) if twist.other_start and not ends else token
        data = tokens.decode_bytes((shown,))
        new = data.decode(errors="replace") if twist.bad_unicode else decoder.decode(data)
        # A stop string may have begun in what was there before, but not wholly.
        start = max(0, len(text) - longest + 1)
        text += new
        ends.append(len(text))
        hit = _stopped(text, start, stop) if stop and len(ends) >= ask.min_tokens else None
        if hit is not None:
            at, word = hit
            return Answer(text[:at], tuple(min(end, at) for end in ends), "stop", word)
    return Answer(text, tuple(ends), reason, None)
