"""The tokenizer: bytes, four special tokens and word pieces of one or two syllables.

Any text comes back exactly from its tokens, since each token stands for its bytes. As with real tokenizers the reverse
does not hold: tokens -> text -> tokens may give others.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BOS, EOS, IM_START, IM_END = range(256, 260)
_SPECIAL = (b"<s>", b"</s>", b"<|im_start|>", b"<|im_end|>")
_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"


def _pieces() -> Iterable[bytes]:
    syllables = ["".join(pair) for pair in product(_CONSONANTS, _VOWELS)]
    for space in ("", " "):
        for syllable in syllables:
            yield f"{space}{syllable}".encode()
    for space in ("", " "):
        for first, second in product(syllables, syllables):
            yield f"{space}{first}{second}".encode()


_BYTES: tuple[bytes, ...] = (*(bytes([value]) for value in range(256)), *_SPECIAL, *_pieces())
_IDS = {piece: number for number, piece in enumerate(_BYTES) if not BOS <= number <= IM_END}
_SPLIT = re.compile(rb" ?(?:[%b][%b]){1,2}|." % (_CONSONANTS.encode(), _VOWELS.encode()), re.DOTALL)

VOCABULARY = len(_BYTES)
"""Token ids are 0 .. VOCABULARY - 1."""


def encode(text: str) -> list[int]:
    """Text to token ids, without special tokens. Raises UnicodeEncodeError for lone surrogates."""
    return [_IDS[piece] for piece in _SPLIT.findall(text.encode())]


def decode_bytes(tokens: Iterable[int]) -> bytes:
    """Token ids to bytes; special tokens are left out."""
    return b"".join(_BYTES[token] for token in tokens if not BOS <= token <= IM_END)


def decode(tokens: Iterable[int]) -> str:
    """Token ids to text; bytes that are no UTF-8 become U+FFFD."""
    return decode_bytes(tokens).decode(errors="replace")


def chat(messages: Sequence[tuple[str, str]]) -> list[int]:
    """Messages (role, text) to the prompt of the assistant's turn, as ChatML does it."""
    prompt: list[int] = []
    for role, text in messages:
        prompt += [IM_START, *encode(f"{role}\n{text}"), IM_END, *encode("\n")]
    return [*prompt, IM_START, *encode("assistant\n")]
