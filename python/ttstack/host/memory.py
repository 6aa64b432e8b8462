"""What takes this host's memory, and how much of it nobody accounts for (proc_meminfo(5), proc_vmstat(5)).

Pages that were pinned for a device and never let go belong to no process once their owner is gone: they leave AnonPages
and are in no other line of /proc/meminfo. So they show in what is left when all lines are taken from MemTotal.
Pages of a process that lives are in AnonPages whether they are pinned or not: it cannot be seen leaking.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ttstack.host.types import Roots

_NEEDED = ("MemTotal", "MemFree", "Buffers", "Cached", "AnonPages", "Slab", "PageTables")
# No line of these is inside another of the sum. Left out on purpose: Shmem is in Cached; SReclaimable, SUnreclaim in
# Slab; Mlocked, Unevictable, Active, Inactive, Mapped and *HugePages say once more where pages of other lines are;
# Unaccepted and CmaFree are in MemFree; VmallocUsed holds KernelStack (CONFIG_VMAP_STACK) and some of a ZFS ARC.
_NEWER = ("KernelStack", "ShadowCallStack", "Percpu", "SecPageTables", "Zswap", "Bounce", "WritebackTmp")
# Mapped pages in the swap cache are in AnonPages, too; most balloon drivers also lower MemTotal.
_UNSURE = ("SwapCached", "Balloon")
_HUGE = "kernel/mm/hugepages"
FREE_LISTS = "per-CPU free lists"
_FREE_LISTS_SHARE = 8  # of the memory at most (mm/page_alloc.c, MIN_PERCPU_PAGELIST_HIGH_FRACTION)
_COUNT = re.compile(r"^ +count: +(\d+)$", re.MULTILINE)
_ARC = "spl/kstat/zfs/arcstats"
# Of the ARC's size, headers and dnodes are in Slab already (openzfs, arc_space_consume).
_ARC_PARTS = ("data_size", "metadata_size")


@dataclass(frozen=True, slots=True)
class Pins:
    """Bytes pinned for devices since boot (nr_foll_pin_acquired, nr_foll_pin_released; pages pinned twice count so)."""

    acquired: int
    released: int

    @property
    def outstanding(self) -> int:
        """Bytes that are pinned now, by whatever driver."""
        return max(0, self.acquired - self.released)


@dataclass(frozen=True, slots=True)
class Memory:
    """One look at the memory; all numbers are bytes."""

    total: int
    available: int | None  # the kernel's guess, which knows nothing of pins
    parts: dict[str, int]  # what takes or is free memory, by the kernel's names; none is inside another
    unsure: dict[str, int]  # what may be, or may be in ``parts`` already
    missing: tuple[str, ...]  # lines without which nothing can be said
    pins: Pins | None  # None: a kernel older than 5.7
    uptime_s: float | None
    foreign: str = ""  # why /proc/meminfo is not the kernel's own

    @property
    def known(self) -> bool:
        """Whether the residual means anything."""
        return not self.missing and not self.foreign

    @property
    def residual(self) -> int:
        """What nobody accounts for. May be below 0: the lines are not read at one moment."""
        return self.total - sum(self.parts.values())

    @property
    def certain(self) -> int:
        """How much of the residual is none of the unsure."""
        return self.residual - sum(self.unsure.values())


@dataclass(frozen=True, slots=True)
class Limit:
    """What a cgroup allows this process, and what is started from it."""

    bytes: int
    cgroup: str  # the group that sets it
    file: str  # memory.max, memory.high or memory.limit_in_bytes


def read_memory(roots: Roots, *, page: int | None = None) -> Memory:
    """Look at the memory once; ``page`` is the size of a page in bytes. Raises HostError."""
    text = read_text(roots.proc / "meminfo")
    if text is None:
        raise HostError(f"there is no {roots.proc / 'meminfo'}", hint="mount /proc")
    lines = _lines(text)
    parts = {name: lines[name] for name in (*_NEEDED[1:], *_NEWER) if name in lines}
    missing = [name for name in _NEEDED if name not in lines]
    huge = _hugetlb(lines, roots.sys)
    if huge is None:
        missing.append("Hugetlb")
    else:
        parts["Hugetlb"] = huge
    # NR_KERNEL_MISC_RECLAIMABLE: KReclaimable is SReclaimable and what else the kernel can take back.
    if "KReclaimable" in lines and "SReclaimable" in lines:
        parts["KReclaimable beside Slab"] = max(0, lines["KReclaimable"] - lines["SReclaimable"])
    page = page or os.sysconf("SC_PAGE_SIZE")
    parts |= {name: size for name, size in _elsewhere(lines, roots) if size}
    unsure = {name: lines[name] for name in _UNSURE if lines.get(name)}
    lists = _free_lists(roots.proc, page)
    if lists is None:
        unsure[FREE_LISTS] = lines.get("MemTotal", 0) // _FREE_LISTS_SHARE
    else:
        parts[FREE_LISTS] = lists
    return Memory(
        total=lines.get("MemTotal", 0),
        available=lines.get("MemAvailable"),
        parts=parts,
        unsure=unsure,
        missing=tuple(missing),
        pins=_pins(roots.proc, page),
        uptime_s=_uptime(roots.proc),
        foreign=_foreign(roots.proc),
    )


def _lines(text: str) -> dict[str, int]:
    """Read lines such as ``MemFree: 12 kB`` into bytes; a line without a unit is a count."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isascii() and words[0].isdigit():
            found[name.strip()] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def _hugetlb(lines: dict[str, int], sys: Path) -> int | None:
    """Bytes of huge pages of all sizes, free or not; None when that cannot be learned.

    The line Hugetlb is younger than the pages (4.19); HugePages_Total counts those of the default size only.
    """
    if "Hugetlb" in lines:
        return lines["Hugetlb"]
    total = 0
    try:
        folders = sorted((sys / _HUGE).iterdir())
    except FileNotFoundError:
        return None if lines.get("HugePages_Total") else 0
    except OSError as error:
        raise HostError(f"cannot list {sys / _HUGE}: {error.strerror}") from error
    for folder in folders:  # hugepages-1048576kB
        size = folder.name.removeprefix("hugepages-").removesuffix("kB")
        count = read_text(folder / "nr_hugepages") or ""
        if size.isdigit() and count.isdigit():
            total += int(size) * 1024 * int(count)
    return total


def _elsewhere(lines: dict[str, int], roots: Roots) -> Iterator[tuple[str, int]]:
    """Yield what takes memory and is told outside of /proc/meminfo."""
    arc = _table(roots.proc / _ARC)
    if all(name in arc for name in _ARC_PARTS):
        yield "ZFS ARC", sum(arc[name] for name in _ARC_PARTS) + arc.get("abd_chunk_waste_size", 0)
    elif "size" in arc:
        yield "ZFS ARC", arc["size"]
    # Swap in memory has its pages of zsmalloc; mem_used_total is the third number (admin-guide/blockdev/zram.rst).
    yield "zram", sum(_nth(path, 2) for path in sorted(roots.sys.glob("block/zram*/mm_stat")))
    if "GPUActive" in lines:
        yield "GPU", lines["GPUActive"] + lines.get("GPUReclaim", 0)
    else:  # of this host's memory; in bytes (gpu/amdgpu/driver-misc.rst)
        yield "GPU", sum(_nth(path, 0) for path in sorted(roots.sys.glob("class/drm/card*/device/mem_info_gtt_used")))


def _table(path: Path) -> dict[str, int]:
    """Read a kstat's lines ``name type value``; {} when there is no such file."""
    rows = [line.split() for line in (read_text(path) or "").splitlines()]
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()}  # noqa: PLR2004 - as above


def _nth(path: Path, index: int) -> int:
    words = (read_text(path) or "").split()
    return int(words[index]) if len(words) > index and words[index].isdigit() else 0


def _free_lists(proc: Path, page: int) -> int | None:
    """Bytes of free pages that CPUs keep for themselves: MemFree has none of them. None: for root alone to read.

    Since Linux 6.7 that may be GBs for as long as a CPU idles after it freed much (mm/page_alloc.c, pcp->high_max).
    """
    try:
        text = read_text(proc / "zoneinfo") or ""
    except HostError:
        return None
    return sum(map(int, _COUNT.findall(text))) * page


def _pins(proc: Path, page: int) -> Pins | None:
    counts = dict(line.split(" ", 1) for line in (read_text(proc / "vmstat") or "").splitlines() if " " in line)
    try:
        return Pins(int(counts["nr_foll_pin_acquired"]) * page, int(counts["nr_foll_pin_released"]) * page)
    except (KeyError, ValueError):
        return None


def _uptime(proc: Path) -> float | None:
    try:
        return float((read_text(proc / "uptime") or "").split()[0])
    except (ValueError, IndexError):
        return None


def _foreign(proc: Path) -> str:
    """Say who stands in for the kernel: lxcfs mounts a /proc/meminfo of a container's own over the real one."""
    for line in (read_text(proc / "self" / "mounts") or "").splitlines():
        words = line.split()
        if words[1:2] == ["/proc/meminfo"]:
            return f"/proc/meminfo is a mount of {words[0]}, which tells a container's share and not the host's memory"
    return ""


def memory_limit(roots: Roots) -> Limit | None:
    """Give the tightest limit of this process's cgroups (cgroup-v2.rst; v1: memory.rst); None: there is none.

    Raises HostError.
    """
    found: list[Limit] = []
    for line in (read_text(roots.proc / "self" / "cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for top in (roots.sys / "fs/cgroup", roots.sys / "fs/cgroup/unified"):
                found += _limits(top, path, ("memory.max", "memory.high"))
        elif "memory" in controllers.split(","):
            found += _limits(roots.sys / "fs/cgroup/memory", path, ("memory.limit_in_bytes",))
    return min(found, key=lambda limit: limit.bytes, default=None)


def _limits(top: Path, path: str, files: tuple[str, ...]) -> Iterator[Limit]:
    """Look at a group and at those above it; a path that leads out of our cgroup namespace (/../) is the top alone."""
    words = [word for word in path.split("/") if word]
    if ".." in words:
        words = []
    for depth in range(len(words), -1, -1):
        for file in files:
            text = read_text(top.joinpath(*words[:depth], file)) or ""
            if text.isdigit() and int(text) < 1 << 62:  # v1 writes a number of that size for none
                yield Limit(int(text), "/" + "/".join(words[:depth]), file)
