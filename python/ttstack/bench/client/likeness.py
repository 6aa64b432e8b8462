"""A short cut through JSON: most events of a stream are the one before with another text and the next count.

An event that is so, byte by byte, needs no parser: a string without quotes, escapes and control characters stands where
a string stood, a number where a number stood, so the tree is the same but for these leaves (RFC 8259).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS = {"text": False, "content": False, "reasoning": True, "reasoning_content": True}
_OTHER = ("tool_calls", "function_call", "refusal", "token_ids")
_OPENS = {name: re.compile(rb'"%b": ?"' % name.encode()) for name in _TEXTS}
_REST = re.compile(rb'(?:[^"\\]|\\.)*')  # of a string
_COUNT = re.compile(rb'"(completion|total)_tokens": ?([0-9]+)')


class Likeness(NamedTuple):
    """What an event must be like. ``tail`` has a place for each of ``adds``: what to add to the count there."""

    head: bytes
    tail: bytes
    adds: tuple[int, ...]  # empty where nothing is counted
    reasoning: bool

    def text_of(self, event: bytes, tokens: int) -> str | None:
        """Return the text of an event that is like this and brings the count to ``tokens``; None for any other."""
        begin = len(self.head)
        end = event.find(b'"', begin)
        piece = event[begin:end]
        tail = self.tail % tuple([tokens + add for add in self.adds]) if self.adds else self.tail
        if not piece or b"\\" in piece or event[end:] != tail or not event.startswith(self.head):
            return None
        try:
            text = piece.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return text if text.isprintable() else None


def likeness_of(event: bytes, body: Mapping[str, Any], choice: Mapping[str, Any]) -> Likeness | None:
    """Learn from an event, its value and the one choice in it; None where that is no plain piece of an answer."""
    parts = choice.get("delta", choice)
    names = [name for name in _TEXTS if parts.get(name)]
    odd = choice.get("finish_reason") or body.get("timings") or body.get("metrics")
    if len(names) != 1 or odd or any(parts.get(name) or choice.get(name) for name in _OTHER):
        return None
    opened = _OPENS[names[0]].search(event)
    if opened is None or event.count(b'"%b"' % names[0].encode()) != 1:  # the key may stand elsewhere as well
        return None
    rest = _REST.match(event, opened.end())
    holed = None if rest is None else _holed(event[rest.end() :], event, body.get("usage"))
    return None if holed is None else Likeness(event[: opened.end()], *holed, _TEXTS[names[0]])


def _holed(tail: bytes, event: bytes, usage: Mapping[str, Any] | None) -> tuple[bytes, tuple[int, ...]] | None:
    """Make places for the counts in what follows the text; None where they are not all there, once each."""
    if not usage:
        return tail, ()
    made, at = usage["completion_tokens"], 0
    pieces, adds = [], {}
    for found in _COUNT.finditer(tail):
        pieces += [tail[at : found.start(2)].replace(b"%", b"%%"), b"%d"]
        at = found.end()
        adds[f"{found[1].decode()}_tokens"] = int(found[2]) - made
    counted = {name: usage[name] - made for name in ("completion_tokens", "total_tokens") if name in usage}
    if adds != counted or any(event.count(b'"%b"' % name.encode()) != 1 for name in adds):
        return None
    pieces.append(tail[at:].replace(b"%", b"%%"))
    return b"".join(pieces), tuple(adds.values())
