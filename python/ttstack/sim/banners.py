"""The lines of the log, each in its source's own format."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

VLLM_VERSION = "0.25.1"


def _stamp() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"


class Log:
    """Standard output, line by line. Lines that contain one of ``missing`` are left out."""

    def __init__(self, missing: Sequence[str] = ()) -> None:
        self._missing = missing
        self._open = True

    def line(self, text: str) -> None:
        """Write one line as it is. A reader that went away does not stop the engine, as with Python's logging."""
        if not self._open or any(part in text for part in self._missing):
            return
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except OSError:
            self._open = False
            # Python flushes at exit once more, and would fail there.
            sys.stdout = None

    def vllm(self, process: str, where: str, text: str, level: str = "INFO") -> None:
        """Write a line of vLLM's logger; ``process`` is APIServer or EngineCore, ``where`` is file.py:LINE."""
        for part in text.split("\n"):
            stamp = time.strftime("%m-%d %H:%M:%S")
            self.line(f"({process} pid={os.getpid()}) {level} {stamp} [{where}] {part}")

    def metal(self, module: str, where: str, text: str, level: str = "info") -> None:
        """Write a line of tt-metal's logger (spdlog); ``where`` is file.cpp:LINE."""
        self.line(f"{_stamp()} | {level:<8} | {module:>7} | {text} ({where})")

    def loguru(self, where: str, text: str, level: str = "INFO") -> None:
        """Write a line of the Python side of tt-metal; ``where`` is module:function:LINE."""
        self.line(f"{_stamp()} | {level:<8} | {where} - {text}")

    def uvicorn(self, text: str) -> None:
        """Write a line of the web server."""
        self.line(f"INFO:     {text}")
