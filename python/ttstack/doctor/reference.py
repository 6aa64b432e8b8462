"""docs/reference/doctor.md, made from the codes.

``python -m ttstack.doctor.reference > ../docs/reference/doctor.md`` refreshes it.
"""

from __future__ import annotations

import sys

from ttstack.doctor.baseline import EARLY_S, PINS_ALLOWED
from ttstack.doctor.codes import CODES
from ttstack.doctor.memory import REBOOT_MB
from ttstack.markdown import code, table

_MIB = 1024 * 1024
_HEAD = f"""\
# ttx doctor

Made by `python -m ttstack.doctor.reference` from the code; [cli.md](cli.md) has the verb's options.

`ttx doctor` says whether this host can run engines. It opens no device, and changes nothing but its own note in the
state folder. It exits with 1 when something is bad, else with 0. `--json` has all that was read, each question's time,
and the same findings.

All questions are asked at once, each in a process of its own with a deadline. One that hangs, as a read from a wedged
card or a dead NFS server may, is killed; if not even that ends it (state D), it is left behind, reported as
`probe.late`, and hinders nobody. Without a hang the answer takes as long as the slowest of them.

The real host is examined, and the cards of its simulated one beside it, if there is one. Containers are those that
docker and podman tell to this user; as root and outside of containers the doctor sees the most.

## Lost memory

An engine pins memory so that a card can reach it. Pages that stay pinned when their process has ended belong to nobody:
no line of `/proc/meminfo` holds them, and only a reboot brings them back. So the doctor looks at what is left over:

    residual = MemTotal - MemFree - Buffers - Cached - AnonPages - Hugetlb - Slab - PageTables
               - KernelStack - ShadowCallStack - Percpu - SecPageTables - Zswap - Bounce - WritebackTmp
               - (KReclaimable - SReclaimable) - free lists of CPUs - ZFS ARC - zram - memory of GPUs

The first row must be there, else there is no verdict (a kernel without `Hugetlb` has its huge pages counted in `/sys`).
The others are taken off where the kernel tells them: the free pages that CPUs keep in lists of their own, which MemFree
leaves out, from `/proc/zoneinfo` (an engine that ends may leave GBs in them); the ARC's data and metadata from
`/proc/spl/kstat/zfs/arcstats` (its headers are in Slab), zram from `/sys/block/zram*/mm_stat`, GPUs from GPUActive and
GPUReclaim, else from amdgpu's `mem_info_gtt_used`. Nothing is taken off twice: Shmem is in Cached, SReclaimable in
Slab, and Mlocked and Unevictable say once more where pages of other lines are. VmallocUsed stays in the residual, as
KernelStack is part of it. SwapCached and Balloon may be inside other lines or beside them, and `/proc/zoneinfo` is
often for root alone to read, when up to an eighth of the memory may be in those lists: where these decide, the verdict
is `memory.unclear`.

A healthy host has a residual too. What is above this boot's *baseline* counts. The baseline is taken by `ttx doctor`
itself and kept in `doctor/baseline.json` of the state folder. It may be taken only while nothing can have leaked:

- in the first {EARLY_S / 60:.0f} minutes after boot,
- with nobody at a card (no process, no container, no slot held) and all of that completely seen,
- with at most {PINS_ALLOWED // _MIB} MiB pinned for devices, where the kernel counts pins.

Later in the same boot it may become smaller, under the second condition, and never larger. So run `ttx doctor` once
after boot, before the first engine. When no baseline is known, the whole residual counts, and the sentence says so.

At or above `TTX_LEAK_REBOOT_MB` ({REBOOT_MB}; units of 1024 * 1024 bytes) it depends on who has a card:

| who has a card | verdict |
|---|---|
| nobody, and all could be looked at | `memory.reboot`: REBOOT RECOMMENDED, exit 1 |
| somebody | `memory.holder`: deferred, with the name; memory that is being given back looks the same |
| could not be seen completely | `memory.blind`: deferred, with what could not be seen |

A residual that large is measured twice, a moment apart, and the smaller one counts. Beside it stands what is pinned for
devices, `nr_foll_pin_acquired - nr_foll_pin_released` of `/proc/vmstat` (since Linux 5.7). A leak of pins shows in
both. A residual without pins is memory of another driver that no line tells, which a reboot brings back, too, unless
that driver always takes it: then raise the limit. Pins without a residual are of living processes (VFIO, RDMA, direct
I/O), or of huge pages, which are in Hugetlb. Pages of a process that lives are in AnonPages, pinned or not, so no
engine can be seen leaking while it runs.

Inside a container with lxcfs `/proc/meminfo` is not the host's, and there is no verdict.

## Findings

ok: fine. note: worth knowing. warn: look at it. bad: mend it.
"""


def reference_text() -> str:
    """Return the page."""
    lines = [_HEAD]
    for section in dict.fromkeys(name.partition(".")[0] for name in CODES):
        rows = [
            (code(name), each.level, each.meaning, each.way_out)
            for name, each in CODES.items()
            if name.startswith(f"{section}.")
        ]
        lines += [f"### {section}", "", *table(("code", "level", "meaning", "way out"), rows), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference_text())
