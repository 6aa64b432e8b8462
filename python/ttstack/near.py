"""The nearest known name, for typing errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant, or "".

    Case, and dashes against underscores, do not count; an abbreviated word does not count much.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only when something is wrong

    plain = {_plain(candidate): candidate for candidate in known}
    close = get_close_matches(_plain(name), list(plain), 1, 0.6)
    return plain[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean NAME``, or "" when nothing is near."""
    near = nearest(name, known)
    return f"did you mean {near}" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
