"""The sum at the end of each line: it tells, without a parser, that a line is whole and as it was written."""

from __future__ import annotations

from zlib import crc32

PLACEHOLDER = "00000000"
_FIELD = b',"sum":"'
_TAIL = len(_FIELD) + 8 + len(b'"}')


def seal(line: bytes) -> bytes:
    """Add the field ``sum`` as the last one to a JSON object's bytes; return the line with its newline."""
    body = line[:-1]
    return b'%s%s%08x"}\n' % (body, _FIELD, crc32(body))


def holds(raw: bytes) -> bool:
    """Whether a line ends with the sum of what is before it. False as well for lines that have none."""
    end = len(raw) - raw.endswith(b"\n")
    body = raw[: end - _TAIL]
    return raw[end - _TAIL : end] == b'%s%08x"}' % (_FIELD, crc32(body))
