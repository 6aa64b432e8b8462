"""Reading TOML files, and laying an arm over the ones that it extends, without losing where each value stands."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.arm.errors import ArmFileError
from ttstack.arm.lines import Key, dotted, key_lines
from ttstack.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands."""

    file: Path
    line: int


@dataclass(frozen=True, slots=True)
class Layers:
    """The content of one file, or of several laid over each other, with the place of every key."""

    file: Path  # the topmost
    data: Mapping[str, object]
    places: Mapping[Key, Place]

    def place(self, key: Key) -> Place:
        """Return the place of a key, else of the nearest table around it, else the file's first line."""
        for end in range(len(key), 0, -1):
            if key[:end] in self.places:
                return self.places[key[:end]]
        return Place(self.file, 1)


class Report:
    """Collects the problems of one set of layers.

    When a file that an arm extends could not be read, the layers are partial: what is missing may well be there.
    """

    def __init__(self, layers: Layers, *, partial: bool = False) -> None:
        self.layers = layers
        self.partial = partial
        self.problems: list[Problem] = []

    def add(self, key: Key, message: str, hint: str = "") -> None:
        """Note a problem at a key."""
        place = self.layers.place(key)
        self.problems.append(Problem(place.file, place.line, dotted(key), message, hint))

    def missing(self, key: Key, message: str, hint: str) -> None:
        """Note a key that is not there."""
        if not self.partial:
            self.add(key, message, hint)


def read_toml(file: Path) -> Layers:
    """Read one file. Raises ArmFileError, with line and column, when it is not TOML."""
    text = _read_text(file)
    try:
        data = tomllib.loads(text)
        lines = key_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise _failure(file, *_syntax(str(error), text)) from None
    except RecursionError:
        raise _failure(file, 0, "is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise _failure(file, 0, f"cannot be read: {error}") from None
    return Layers(file, data, {key: Place(file, line) for key, line in lines.items()})


def lay_over(base: Layers, top: Layers) -> Layers:
    """Merge: tables key by key, anything else from ``top``. ``extends`` and ``schema`` are the file's own."""
    own = {"extends", "schema"}
    places = {key: place for key, place in base.places.items() if key[0] not in own}
    inherited = {key: value for key, value in base.data.items() if key not in own}
    data = _merge(inherited, top.data, (), places)
    return Layers(top.file, data, places | dict(top.places))


def _merge(
    base: Mapping[str, object], top: Mapping[str, object], at: Key, places: dict[Key, Place]
) -> dict[str, object]:
    merged = dict(base)
    for name, value in top.items():
        key = (*at, name)
        below = merged.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[name] = _merge(below, value, key, places)
            continue
        for stale in [place for place in places if place[: len(key)] == key]:
            del places[stale]
        merged[name] = value
    return merged


def _failure(file: Path, line: int, message: str) -> ArmFileError:
    return ArmFileError((Problem(file, line, "", message),))


def _syntax(message: str, text: str) -> tuple[int, str]:
    """Split the parser's message into line and what is wrong."""
    match = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if match is None:
        return 0, f"is not TOML: {message}"
    what = message[: match.start()].replace("Cannot overwrite a value", "a second value for one key")
    if match[1] is None:
        return text.count("\n") + (not text.endswith("\n")), f"is not TOML: {what} at the end of the file"
    return int(match[1]), f"is not TOML: {what} at column {match[2]}"


def _read_text(file: Path) -> str:
    """Read a regular UTF-8 file of at most 1 MiB."""
    try:
        # O_NONBLOCK: a pipe in the file's place must be refused, not waited for.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise _failure(file, 0, "is a folder, not a file" if stat.S_ISDIR(mode) else "is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                raw = stream.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise _failure(file, 0, "does not exist") from None
    except OSError as error:
        raise _failure(file, 0, f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise _failure(file, 0, "is larger than 1 MiB: this is not an arm, a pin or a catalogue")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _failure(file, line, f"is not UTF-8: byte 0x{raw[error.start]:02x}") from None
