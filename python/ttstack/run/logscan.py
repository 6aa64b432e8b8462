"""One pass over an engine's log, whatever its size: what identity must know of it, and nothing else is kept."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ttstack.run.texts import BUILDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from io import FileIO
    from pathlib import Path

CACHE_LINE = "Cache directory: "
NOT_LOADED = "Failed to load cache for"
"""ttnn makes a tensor file that did not load again, with a mere warning (tt-metal#25693)."""

LONGEST = 65536
"""Bytes of a line that are looked at; an engine's own lines are far shorter, what is longer was sent by a user."""

_CHUNK = 1 << 20
_MARKS = tuple(text.encode() for text in (CACHE_LINE, NOT_LOADED, BUILDING))


@dataclass(frozen=True, slots=True)
class LogSeen:
    """What a boot's log shows. ``banners``: the line for each of those that were asked for and are there."""

    banners: Mapping[str, str] = field(default_factory=dict)
    cache_dir: str = ""  # the first folder that was named; "" when none was
    wrong_dir: str = ""  # the first that is not in the folder that the engine was given
    not_loaded: str = ""  # the first line about a tensor file that did not load
    building: bool = False  # it tells of tensor files that it makes


def read_log(path: Path, banners: Sequence[str], cache_path: str) -> LogSeen:
    """Scan the whole lines of a log; one that is not there shows nothing. Raises OSError."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return LogSeen()
    with file:
        return scan_log(_blocks(file), banners, cache_path)


def scan_log(blocks: Iterable[bytes], banners: Sequence[str], cache_path: str) -> LogSeen:
    """Look at each line of blocks of whole lines, once.

    ``cache_path``: where the engine was told to keep its tensors, as it sees it.
    """
    scan = _Scan(cache_path, list(dict.fromkeys(banners)))
    for block in blocks:
        # Once the banners were seen, of a log's megabytes hardly a block needs a closer look.
        if scan.missing or any(mark in block for mark in _MARKS):
            for line in lines_of(block):
                scan.look(line)
    return LogSeen(scan.shown, scan.named, scan.wrong, scan.not_loaded, scan.building)


@dataclass(slots=True)
class _Scan:
    cache_path: str
    missing: list[str]
    shown: dict[str, str] = field(default_factory=dict)
    named: str = ""
    wrong: str = ""
    not_loaded: str = ""
    building: bool = False

    def look(self, raw: bytes) -> None:
        """Look at one line."""
        marked = any(mark in raw for mark in _MARKS)
        if not (marked or self.missing):
            return
        line = text_of(raw)
        for banner in [banner for banner in self.missing if shows(line, banner)]:
            self.shown[banner] = line
            self.missing.remove(banner)
        self.building = self.building or BUILDING in line
        self.not_loaded = self.not_loaded or (line if NOT_LOADED in line else "")
        if CACHE_LINE in line:
            path = line.partition(CACHE_LINE)[2].strip()
            self.named = self.named or path
            self.wrong = self.wrong or ("" if within(path, self.cache_path) else path)


def text_of(raw: bytes) -> str:
    """Decode a line."""
    return raw.decode("utf-8", "replace").rstrip("\r")


def shows(line: str, banner: str) -> bool:
    """Whether a line shows a banner: plain text inside it, or a regular expression after ``re:``."""
    pattern = banner.removeprefix("re:")
    return banner in line if pattern == banner else re.search(pattern, line) is not None


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; a relative one does not, as it is the engine's own."""
    return f"{os.path.normpath(path)}/".startswith(f"{os.path.normpath(folder)}/")


class Blocks:
    """Cuts what is read into blocks of whole lines, and keeps the beginning of the next line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Give all lines that end in the next chunk, with their newlines."""
        end = chunk.rfind(b"\n") + 1
        block = self._rest + chunk[:end] if end else b""
        self._rest = ((b"" if end else self._rest) + chunk[end:])[:LONGEST]
        return block


def _blocks(file: FileIO) -> Iterator[bytes]:
    blocks = Blocks()
    while chunk := file.read(_CHUNK):
        yield blocks.feed(chunk)


def lines_of(block: bytes) -> list[bytes]:
    """Split a block into its lines, each cut to ``LONGEST`` bytes."""
    return [line[:LONGEST] for line in block.split(b"\n")[:-1]]


class Follower:
    """Reads a log that grows: whole lines only, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._blocks = Blocks()

    def lines(self) -> Iterator[str]:
        """Give the lines that came since the last call; none while there is no log. Raises OSError."""
        try:
            file = self._path.open("rb", buffering=0)
        except FileNotFoundError:
            return
        with file:
            file.seek(self._at)
            while chunk := file.read(_CHUNK):
                self._at += len(chunk)
                for line in lines_of(self._blocks.feed(chunk)):
                    yield text_of(line)
