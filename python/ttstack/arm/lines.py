"""Which line of a TOML text each key and each list item stands on.

The standard library's parser gives values without places. This scanner reads a text that the parser has already
accepted, so it only needs to know where things begin and end (TOML 1.0.0, sections "Keys" to "Array of Tables").
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right

Key = tuple[str | int, ...]
"""Path of a value: keys of tables and indices of lists."""

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def dotted(key: Key) -> str:
    """Write a path as a person would: ``engine.args.max-model-len``, ``overlay[0].source``."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        bare = bool(part) and set(part) <= _BARE
        text += ("." if text else "") + (part if bare else '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return text


def key_lines(text: str) -> dict[Key, int]:
    """Map every key path of a valid TOML text to its 1-based line.

    A table's line is its header's, or that of the first key that brings it into being.
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.lines


class _Scanner:
    """A cursor over the text; ``lines`` fills as it moves."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Key, int] = {}
        self._starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        self._arrays: dict[Key, int] = {}  # arrays of tables: how many tables each has so far

    def document(self) -> None:
        """Read the whole text."""
        table: Key = ()
        while self._next_thing():
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _line(self) -> int:
        return bisect_right(self._starts, self.at)

    def _next_thing(self) -> bool:
        """Skip white space, line ends and comments; tell whether anything is left."""
        while self.at < len(self.text):
            if self.text[self.at] in " \t\n":
                self.at += 1
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            else:
                return True
        return False

    def _blanks(self) -> None:
        while self.text[self.at : self.at + 1] in {" ", "\t"}:
            self.at += 1

    def _header(self) -> Key:
        line, many = self._line(), self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        parts = self._key()
        self.at += 2 if many else 1
        table: Key = ()
        for part in parts[:-1]:
            table = self._last((*table, part), line)
        table = (*table, parts[-1])
        if many:
            index = self._arrays.get(table, 0)
            self._arrays[table] = index + 1
            self.lines.setdefault(table, line)
            table = (*table, index)
        self.lines[table] = line
        return table

    def _last(self, table: Key, line: int) -> Key:
        """Note a table that a longer name passes through; in an array of tables it is the newest one."""
        self.lines.setdefault(table, line)
        count = self._arrays.get(table)
        return table if count is None else (*table, count - 1)

    def _pair(self, table: Key) -> None:
        line = self._line()
        for part in self._key():
            table = (*table, part)
            self.lines.setdefault(table, line)
        self.at += 1  # the equals sign
        self._value(table)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._blanks()
            parts.append(self._part())
            self._blanks()
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def _part(self) -> str:
        start = self.at
        if self.text[start] in "\"'":
            self._string()
            return str(tomllib.loads(f"key = {self.text[start : self.at]}")["key"])
        while self.text[self.at] in _BARE:
            self.at += 1
        return self.text[start : self.at]

    def _string(self) -> None:
        quote = self.text[self.at]
        closing = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(closing)
        while not self.text.startswith(closing, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(closing)
        if len(closing) > 1:  # up to two quotes may stand right before the closing three
            for _ in range(2):
                self.at += self.text.startswith(quote, self.at)

    def _value(self, key: Key) -> None:
        self._blanks()
        first = self.text[self.at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._list(key)
        elif first == "{":
            self._inline_table(key)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def _list(self, key: Key) -> None:
        self.at += 1
        index = 0
        while self._next_thing() and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            item = (*key, index)
            self.lines[item] = self._line()
            self._value(item)
            index += 1
        self.at += 1

    def _inline_table(self, key: Key) -> None:
        self.at += 1
        while self._next_thing() and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self._pair(key)
        self.at += 1
