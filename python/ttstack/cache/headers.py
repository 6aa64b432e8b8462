"""What a tensor file says of itself, and whether the file is as long as it says.

ttnn's ``.tensorbin`` (tt-metal, ttnn/core/tensor/serialization.cpp and flatbuffer/tensor_flatbuffer.cpp): eight bytes
that hold the length of a FlatBuffer, the FlatBuffer, the data. The FlatBuffer is a table ``Tensor``, whose third field
lists the shards, each with a union whose first kind is ``InlineFileStorage { offset, size }``, from the start of the
data. ttnn 0.81.1 refuses a file that ends before one of them does; builds before that take it.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

SIMULATED = struct.Struct("<8sQ32s")
SIMULATED_MAGIC = b"TTXTNSR1"
"""The simulated engine's: magic, bytes of payload, sha256 of the payload."""

_LENGTH = struct.Struct("<Q")
_LARGEST = (1 << 31) - 1  # FLATBUFFERS_MAX_BUFFER_SIZE: the loader takes no larger one
_READ = 4096  # most headers are some hundred bytes
_MOST = 64 << 20  # bytes of a header that are looked into
_SHARDS = 2  # slot of the field
_INLINE = 1  # kind of the union


@dataclass(frozen=True, slots=True)
class Judged:
    """What is wrong with a file; "" when nothing is. ``known``: somebody here knows what such a file must look like."""

    fault: str = ""
    known: bool = True
    payload: tuple[int, bytes] | None = None  # where it begins, and its sha256, when the file tells


_UNKNOWN = Judged(known=False)


def judge(handle: int, name: str, size: int) -> Judged:
    """Look at the header of an open file. Raises OSError."""
    head = os.pread(handle, _READ, 0)
    if head.startswith(SIMULATED_MAGIC):
        return _simulated(head, size)
    if not name.endswith(".tensorbin"):
        return _UNKNOWN
    return _tensorbin(handle, head, size) if len(head) >= _LENGTH.size else Judged("it is too short for a header")


def _tensorbin(handle: int, head: bytes, size: int) -> Judged:
    (length,) = _LENGTH.unpack_from(head)
    data_at = _LENGTH.size + length
    if data_at > size:
        return Judged(f"it is truncated or corrupt: its header would take {length} bytes of {size}")
    if length >= _LARGEST:
        return Judged(f"it is corrupt: its header would take {length} bytes")
    if length > _MOST:
        return _UNKNOWN
    if data_at > len(head):
        head += os.pread(handle, data_at - len(head), len(head))
    return _ttnn(head[_LENGTH.size : data_at], size - data_at)


def _simulated(head: bytes, size: int) -> Judged:
    if len(head) < SIMULATED.size:
        return Judged("it is truncated: its header is not whole")
    _, length, digest = SIMULATED.unpack_from(head)
    if SIMULATED.size + length != size:
        return Judged(f"it is truncated or corrupt: {size - SIMULATED.size} bytes of data where {length} belong")
    return Judged(payload=(SIMULATED.size, digest))


def _ttnn(flat: bytes, data: int) -> Judged:
    try:
        root = _Table(flat, _u32(flat, 0))
    except struct.error:
        return Judged("its header is corrupt")
    try:
        end = max(_ends(flat, root), default=0)
    except (struct.error, _OtherSchemaError):
        return _UNKNOWN  # ttnn's earlier builds described shards in another way
    return Judged(f"it is truncated: {data} bytes of data where {end} belong" if end > data else "")


def _ends(flat: bytes, root: _Table) -> list[int]:
    """Where each shard's data ends, in bytes from the start of the data."""
    vector = root.follow(_SHARDS)
    count = _u32(flat, vector)
    if not 0 < count <= len(flat) // 4:
        raise _OtherSchemaError
    return [_end(flat, vector + 4 + 4 * at) for at in range(count)]


def _end(flat: bytes, at: int) -> int:
    shard = _Table(flat, at + _u32(flat, at))
    kind = shard.slot(0)
    if flat[kind : kind + 1] != bytes([_INLINE]):
        raise _OtherSchemaError
    offset, size = struct.unpack_from("<QQ", flat, shard.follow(1))
    return int(offset + size)


class _OtherSchemaError(Exception):
    """The header is no ``Tensor`` of the schema that is known here."""


class _Table:
    """A FlatBuffers table: a signed offset back to its vtable, which holds the fields' offsets from the table."""

    def __init__(self, flat: bytes, at: int) -> None:
        self._flat, self._at = flat, at
        (back,) = struct.unpack_from("<i", flat, at)
        self._vtable = at - back
        if self._vtable < 0:
            raise struct.error("a vtable that lies before the buffer")
        self._size, inline = struct.unpack_from("<HH", flat, self._vtable)
        if self._size < 4 or self._vtable + self._size > len(flat) or at + inline > len(flat):  # noqa: PLR2004 - its own head
            raise struct.error("a table that ends behind the buffer")

    def slot(self, number: int) -> int:
        """Where a field's value is. Raises _OtherSchemaError when the table has none."""
        entry = 4 + 2 * number
        offset = struct.unpack_from("<H", self._flat, self._vtable + entry)[0] if entry + 2 <= self._size else 0
        if not offset:
            raise _OtherSchemaError
        return self._at + int(offset)

    def follow(self, number: int) -> int:
        """Where a field's offset leads."""
        at = self.slot(number)
        return at + _u32(self._flat, at)


def _u32(flat: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", flat, at)[0])
