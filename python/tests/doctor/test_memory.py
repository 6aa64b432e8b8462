from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from doctor_kit import PAGE, roots_of, trees

from ttstack.host import memory
from ttstack.host.errors import HostError
from ttstack.host.memory import Limit, memory_limit, read_memory

if TYPE_CHECKING:
    from pathlib import Path

    from ttstack.host.memory import Memory
    from ttstack.host.types import Roots

HEALTHY = 275_000_320  # 268555 kB
MORE = 1_000_000  # kB


def read(roots: Roots) -> Memory:
    return read_memory(roots, page=PAGE)


def changed(folder: Path, lines: dict[str, int], fixture: str = "healthy") -> Memory:
    """Read a copy of a host, some lines of whose meminfo say so many kB more; new ones are added."""
    shutil.copytree(roots_of(fixture).proc.parent, folder / "host")
    roots = trees(folder / "host")
    file = roots.proc / "meminfo"
    text = file.read_text()
    for name, more in lines.items():
        old = re.search(rf"^{re.escape(name)}: +(\d+) kB$", text, re.MULTILINE)
        if old:
            text = text.replace(old[0], f"{name}: {int(old[1]) + more} kB")
        else:
            text += f"{name}: {more} kB\n"
    file.write_text(text)
    return read(roots)


@pytest.mark.parametrize(
    ("fixture", "residual"), [("healthy", HEALTHY), ("leak-6gb", HEALTHY + 6_000_000_000), ("arc-40gb", HEALTHY)]
)
def test_the_residual_of_known_hosts(fixture: str, residual: int) -> None:
    seen = read(roots_of(fixture))
    assert seen.residual == pytest.approx(residual, abs=1024)
    assert (seen.known, seen.certain) == (True, seen.residual)


@pytest.mark.parametrize(
    "name",
    [
        *("Buffers", "Cached", "AnonPages", "Hugetlb", "Slab", "PageTables"),
        *("KernelStack", "Percpu", "SecPageTables", "Zswap", "Bounce", "WritebackTmp", "KReclaimable"),
        *("ShadowCallStack", "GPUActive"),
    ],
)
def test_memory_that_is_told_is_not_lost(tmp_path: Path, name: str) -> None:
    assert changed(tmp_path, {name: MORE, "MemFree": -MORE}).residual == pytest.approx(HEALTHY, abs=1024)


@pytest.mark.parametrize(
    "name",
    [
        *("Shmem", "SUnreclaim", "Mlocked", "Unevictable", "Mapped", "AnonHugePages", "Active", "Inactive"),
        *("Active(anon)", "Inactive(anon)", "Active(file)", "Inactive(file)", "VmallocUsed", "CmaFree", "Unaccepted"),
        *("Dirty", "Zswapped", "MemAvailable", "Committed_AS", "DirectMap4k", "ShmemHugePages", "FileHugePages"),
    ],
)
def test_what_is_inside_another_line_is_not_taken_off_twice(tmp_path: Path, name: str) -> None:
    assert changed(tmp_path, {name: MORE}).residual == pytest.approx(HEALTHY, abs=1024)


def test_reclaimable_slab_is_in_slab(tmp_path: Path) -> None:
    more = {"Slab": MORE, "SReclaimable": MORE, "KReclaimable": MORE, "MemFree": -MORE}
    assert changed(tmp_path, more).residual == pytest.approx(HEALTHY, abs=1024)


def test_free_pages_that_cpus_keep_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = read(roots_of("healthy"))
    assert (seen.parts["per-CPU free lists"], seen.unsure) == (8000 * PAGE, {})
    real = memory.read_text

    def for_root_alone(path: Path) -> str | None:
        if path.name == "zoneinfo":
            raise HostError("cannot read it: Permission denied")
        return real(path)

    monkeypatch.setattr(memory, "read_text", for_root_alone)
    seen = read(roots_of("healthy"))
    assert seen.unsure == {"per-CPU free lists": seen.total // 8}
    assert seen.residual == pytest.approx(HEALTHY + 8000 * PAGE, abs=1024)


@pytest.mark.parametrize("name", ["SwapCached", "Balloon"])
def test_what_may_be_inside_another_line_makes_the_residual_unsure(tmp_path: Path, name: str) -> None:
    seen = changed(tmp_path, {name: MORE})
    assert (seen.residual - seen.certain, seen.unsure) == (MORE * 1024, {name: MORE * 1024})


def test_the_headers_of_the_arc_are_in_slab_already(tmp_path: Path) -> None:
    seen = read(roots_of("arc-40gb"))
    assert seen.parts["ZFS ARC"] == 40_000_000_000
    shutil.copytree(roots_of("arc-40gb").proc.parent, tmp_path / "host")
    file = tmp_path / "host/proc/spl/kstat/zfs/arcstats"
    file.write_text("\n".join(line for line in file.read_text().splitlines() if "metadata_size" not in line))
    assert read(trees(tmp_path / "host")).parts["ZFS ARC"] == 41_500_000_000  # size: better too much than a false alarm


def test_swap_in_memory_is_told_elsewhere(tmp_path: Path) -> None:
    shutil.copytree(roots_of("healthy").proc.parent, tmp_path / "host")
    roots = trees(tmp_path / "host")
    for number, used in enumerate((5_000_000_000, 1_000_000)):
        folder = roots.sys / f"block/zram{number}"
        folder.mkdir(parents=True)
        (folder / "mm_stat").write_text(f"20000000000 4900000000 {used} 0 5000000000 12 0 0 0\n")
    assert read(roots).parts["zram"] == 5_001_000_000


def test_memory_of_a_gpu_is_told_elsewhere_and_once(tmp_path: Path) -> None:
    shutil.copytree(roots_of("healthy").proc.parent, tmp_path / "host")
    roots = trees(tmp_path / "host")
    folder = roots.sys / "class/drm/card1/device"
    folder.mkdir(parents=True)
    (folder / "mem_info_gtt_used").write_text("4000000000\n")
    assert read(roots).parts["GPU"] == 4_000_000_000
    with (roots.proc / "meminfo").open("a") as file:
        file.write("GPUActive:  1000 kB\nGPUReclaim:  24 kB\n")
    assert read(roots).parts["GPU"] == 1024 * 1024


def test_without_a_line_that_is_needed_nothing_is_known() -> None:
    seen = read(roots_of("missing-keys"))
    assert (seen.known, seen.missing) == (False, ("AnonPages", "PageTables"))


def test_an_old_kernel_tells_its_huge_pages_in_sysfs(tmp_path: Path) -> None:
    seen = read(roots_of("old-kernel"))
    assert seen.parts["Hugetlb"] == 2 << 30
    assert (seen.known, seen.pins) == (True, None)
    assert seen.residual == pytest.approx(HEALTHY + (100_000 + 71_232 + 20_484) * 1024, abs=1024)  # lines it lacks
    shutil.copytree(roots_of("old-kernel").proc, tmp_path / "proc")
    assert read(trees(tmp_path)).parts["Hugetlb"] == 0  # a kernel without huge pages
    text = (tmp_path / "proc/meminfo").read_text().replace("HugePages_Total:       0", "HugePages_Total:       9")
    (tmp_path / "proc/meminfo").write_text(text)
    assert read(trees(tmp_path)).missing == ("Hugetlb",)  # of which size, nobody tells


def test_pins_are_pages() -> None:
    pins = read(roots_of("leak-6gb")).pins
    assert pins
    assert pins.outstanding == 1464843 * PAGE


def test_a_meminfo_that_is_a_containers_share_is_no_hosts(tmp_path: Path) -> None:
    shutil.copytree(roots_of("healthy").proc.parent, tmp_path / "host")
    mounts = tmp_path / "host/proc/self/mounts"
    mounts.write_text(mounts.read_text() + "lxcfs /proc/meminfo fuse.lxcfs rw,nosuid,nodev 0 0\n")
    seen = read(trees(tmp_path / "host"))
    assert not seen.known
    assert "lxcfs" in seen.foreign


def test_no_meminfo(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="there is no"):
        read(trees(tmp_path))


def test_lines_that_are_none_are_left_out(tmp_path: Path) -> None:
    shutil.copytree(roots_of("healthy").proc.parent, tmp_path / "host")
    roots = trees(tmp_path / "host")
    with (roots.proc / "meminfo").open("a") as file:
        file.write("\nZswap\nPercpu:\nSecPageTables: many kB\nKernelStack: -5 kB\n")
    assert read(roots).residual == pytest.approx(HEALTHY, abs=1024)


def test_the_tightest_cgroup_above_is_the_limit(tmp_path: Path) -> None:
    limit = memory_limit(roots_of("limited"))
    assert limit == Limit(16 << 30, "/system.slice/ttx.service", "memory.max")
    assert memory_limit(roots_of("healthy")) is None
    shutil.copytree(roots_of("limited").proc.parent, tmp_path / "host")
    top = tmp_path / "host/sys/fs/cgroup"
    (top / "system.slice/ttx.service/memory.max").write_text("max\n")
    assert memory_limit(trees(tmp_path / "host")) == Limit(64 << 30, "/system.slice", "memory.high")
    # a container's own namespace of cgroups: its limit is at the top
    (tmp_path / "host/proc/self/cgroup").write_text("0::/../../elsewhere\n")
    (top / "memory.max").write_text("1073741824\n")
    (top.parent / "memory.max").write_text("1024\n")  # outside of it
    assert memory_limit(trees(tmp_path / "host")) == Limit(1 << 30, "/", "memory.max")


def test_the_older_cgroups_limit(tmp_path: Path) -> None:
    shutil.copytree(roots_of("healthy").proc.parent, tmp_path / "host")
    roots = trees(tmp_path / "host")
    (roots.proc / "self/cgroup").write_text("9:name=systemd:/\n4:cpu,memory:/docker/5f\n")
    folder = roots.sys / "fs/cgroup/memory/docker/5f"
    folder.mkdir(parents=True)
    (folder.parents[1] / "memory.limit_in_bytes").write_text("9223372036854771712\n")  # none
    assert memory_limit(roots) is None
    (folder / "memory.limit_in_bytes").write_text("8589934592\n")
    assert memory_limit(roots) == Limit(8 << 30, "/docker/5f", "memory.limit_in_bytes")
