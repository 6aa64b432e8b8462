"""Server-sent events, parsed as they arrive (WHATWG HTML, section 9.2.6 "Interpreting an event stream")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a CR at the very end may be the first half of CR LF


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``kind`` is "message" unless the stream says otherwise."""

    kind: str
    data: str


@dataclass(slots=True)
class EventParser:
    """Feed it bytes, cut anywhere; it returns the events that they complete."""

    _rest: bytes = b""
    _kind: str = ""
    _data: list[str] = field(default_factory=list)
    _begun: bool = False

    def feed(self, data: bytes) -> list[Event]:
        """Take more bytes. Raises UnicodeDecodeError for a line that is not UTF-8."""
        *lines, self._rest = _LINE.split(self._rest + data)
        events = []
        for line in lines:
            text = line.decode("utf-8")
            if not self._begun:
                self._begun, text = True, text.removeprefix("\ufeff")
            if text:
                self._field(text)
            elif event := self._dispatch():
                events.append(event)
        return events

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")  # a comment has an empty name
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value

    def _dispatch(self) -> Event | None:
        event = Event(self._kind or "message", "\n".join(self._data)) if self._data else None
        self._kind, self._data = "", []
        return event
