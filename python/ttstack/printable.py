"""Text from elsewhere, made safe for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Write out what is no character to be seen: escape sequences, line breaks, halves of characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
