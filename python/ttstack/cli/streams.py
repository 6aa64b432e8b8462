"""The standard streams as they may be: closed, full, of another encoding, with nobody who reads on."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def hold_streams() -> None:
    """Make sure that there are three.

    The number of one that is closed (``ttx run ARM <&-``) would be given to the next file that is opened, and a child
    would find a lock or a socket of ours there. What stdout's encoding lacks is written as an escape.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the process's own
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Say something on stderr. That nobody hears it changes nothing of what was done."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        # The interpreter would try again at its end, and exit by another code when it cannot.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the process's own


@contextmanager
def told() -> Iterator[None]:
    """Write to stdout what came of something that was done: a reader who went away (``| head``) is no fault of it."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = None


def terminal_width() -> int:
    """How many columns the terminal has that stdout is; 0 when it is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 0


def encodable(text: str) -> bool:
    """Whether stdout's encoding has all that is in a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
