"""The residual on the running kernel: pages that are held when their process has let go of them show in it."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import time

import pytest

from ttstack.host.memory import read_memory
from ttstack.host.types import Roots

SIZE = 1 << 20  # bytes in each pipe: as many as /proc/sys/fs/pipe-max-size allows
PIPES = 450  # two descriptors each, of 1024
ALL = PIPES * SIZE
NOISE = 0.25 * ALL  # what other processes of a busy machine move meanwhile


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def residual() -> int:
    """Take the smallest of a few looks: other processes come and go."""
    looks = []
    for _ in range(5):
        looks.append(read_memory(Roots()).residual)
        time.sleep(0.02)
    return min(looks)


@pytest.mark.host
@pytest.mark.skipif(os.geteuid() != 0, reason="as many pages in pipes are for root alone (pipe(7))")
def test_pages_that_outlive_their_mapping_are_unaccounted_for() -> None:
    """vmsplice(2) keeps pages of a process alive in a pipe, as a pin does, after it unmapped them."""
    splice = ctypes.CDLL(None, use_errno=True).vmsplice
    pipes = [os.pipe() for _ in range(PIPES)]
    try:
        pages = [mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in pipes]
        for page, (_, end) in zip(pages, pipes, strict=True):
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, SIZE)
            page.write(b"x" * SIZE)
        mapped = residual()  # they are in AnonPages now
        for page, (_, end) in zip(pages, pipes, strict=True):
            view = (ctypes.c_char * SIZE).from_buffer(page)
            part = _Iovec(ctypes.addressof(view), SIZE)
            done = 0
            while done < SIZE:
                sent = splice(end, ctypes.byref(_Iovec(part.base + done, SIZE - done)), ctypes.c_ulong(1), 0)
                assert sent > 0, os.strerror(ctypes.get_errno())
                done += sent
            del view
            page.close()
        lost = residual() - mapped
    finally:
        for ends in pipes:
            for end in ends:
                os.close(end)
    assert lost == pytest.approx(ALL, abs=NOISE)
    assert residual() - mapped < NOISE  # they are free again, although MemFree leaves those out that CPUs keep
