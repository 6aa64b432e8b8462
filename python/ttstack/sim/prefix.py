"""The prefix cache: which blocks of a prompt were computed before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class PrefixCache:
    """Whole blocks of ``block_size`` tokens, each known together with all before it; the oldest go first."""

    def __init__(self, block_size: int, blocks: int) -> None:
        self._size = block_size
        self._room = blocks
        self._known: dict[int, None] = {}

    def take(self, prompt: Sequence[int]) -> int:
        """Cache a prompt; return the number of tokens at its start that were cached before.

        The last token is always computed, since the answer's first token needs it: as in vLLM.
        """
        chain, cached, missed = 0, 0, False
        for at in range(0, len(prompt) - self._size + 1, self._size):
            chain = hash((chain, tuple(prompt[at : at + self._size])))
            missed = missed or chain not in self._known
            if not missed and at + self._size < len(prompt):
                cached = at + self._size
            self._known.pop(chain, None)
            self._known[chain] = None
        while len(self._known) > self._room:
            del self._known[next(iter(self._known))]
        return cached
