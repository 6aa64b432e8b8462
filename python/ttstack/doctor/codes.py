"""Every code that a finding can have. docs/reference/doctor.md is made from this."""

from __future__ import annotations

from ttstack.doctor.types import Ailment, Finding

CODES: dict[str, Ailment] = {
    "cards.none": Ailment("note", "this host has no card", "`ttx run sim` makes simulated ones"),
    "cards.healthy": Ailment("ok", "the card's firmware lives (its counter moved between two looks), and versions fit"),
    "cards.simulated": Ailment("ok", "a card of the simulated host; it has no firmware"),
    "cards.unbound": Ailment(
        "bad",
        "a Tenstorrent device is on the PCI bus, and tt-kmd does not drive it",
        "load the driver (modprobe tenstorrent) and see: dmesg | grep tenstorrent",
    ),
    "cards.no-node": Ailment(
        "warn",
        "tt-kmd drives a card that has no node under /dev/tenstorrent here",
        "in a container: pass the node on; else see: udevadm trigger, dmesg | grep tenstorrent",
    ),
    "cards.heartbeat-stopped": Ailment(
        "bad",
        "the counter that the card's firmware moves stood still (tt-kmd, docs/sysfs-attributes.md)",
        "with no holder left (ttx slot ls), reset the card: tt-smi -r; else power the host off and on",
    ),
    "cards.heartbeat-untold": Ailment(
        "note", "driver or firmware tells no heartbeat", "update tt-kmd and the firmware"
    ),
    "cards.firmware-unsupported": Ailment(
        "bad",
        "the firmware is older than the oldest that UMD opens: 18.5.0 on Blackhole, 18.3.0 on Wormhole"
        " (tt-umd, get_minimum_compatible_firmware_version)",
        "flash a newer bundle: tt-flash",
    ),
    "cards.firmware-old": Ailment(
        "warn",
        "the firmware is older than the 19.2.0 that tt-metal asks for on Blackhole (tt-metal, INSTALLING.md)",
        "flash a newer bundle: tt-flash",
    ),
    "cards.firmware-mixed": Ailment(
        "warn", "the cards have different firmware, which UMD reports as an error", "flash all cards alike: tt-flash"
    ),
    "cards.firmware-untold": Ailment("note", "the driver does not tell the firmware's version", "update tt-kmd"),
    "cards.driver-unsupported": Ailment(
        "bad", "tt-kmd is older than 2.0.0, which UMD refuses (tt-umd, KMD_MINIMUM_VERSION)", "install a newer tt-kmd"
    ),
    "cards.driver-old": Ailment(
        "warn",
        "tt-kmd is older than 2.5.0, which tt-metal asks for on Blackhole (tt-metal, INSTALLING.md) and which lists"
        " who has a card",
        "install a newer tt-kmd",
    ),
    "cards.driver-leaks": Ailment(
        "warn",
        "tt-kmd is older than 2.8.0, before which a failed PIN_PAGES could leave its pages pinned (tt-kmd 2.8.0)",
        "install tt-kmd 2.8.0 or newer",
    ),
    "cards.driver-untold": Ailment("note", "the driver does not tell its version", "see: modinfo tenstorrent"),
    "cards.dma": Ailment("ok", "the engine can give the cards memory: through an IOMMU, or in 1 GiB hugepages"),
    "cards.hugepages-missing": Ailment(
        "bad",
        "fewer 1 GiB hugepages are reserved than cards need that no IOMMU translates for (tt-umd)",
        "boot with hugepagesz=1G hugepages=N, or with an IOMMU that translates (without iommu=pt)",
    ),
    "cards.hugepages-unmounted": Ailment(
        "bad",
        "cards need 1 GiB hugepages, and nothing is mounted to take them from",
        "mount -t hugetlbfs -o pagesize=1G,mode=0777 none /dev/hugepages-1G",
    ),
    "cards.hugepages-stale": Ailment(
        "warn",
        "1 GiB hugepages are taken although nobody has a card, so the next engine may get none (spdk#349)",
        "remove what a dead engine left: ls -l /dev/hugepages-1G",
    ),
    "slots.free": Ailment("ok", "nobody has the card"),
    "slots.held": Ailment("ok", "the card's slot is taken, and its owner lives"),
    "slots.dirty": Ailment("bad", "an engine did not stop when it was told to, and has the card", "see: ttx status"),
    "slots.orphan": Ailment(
        "warn", "the slot is held, and its owner does not live", "see: ttx status; then ttx adopt RUN or ttx down RUN"
    ),
    "slots.open": Ailment("warn", "somebody has the card without its slot", "stop it, or start it by: ttx slot run"),
    "slots.unknown": Ailment(
        "warn", "who has the card cannot be told, so ttx will not take it", "run ttx as root, outside containers"
    ),
    "runs.settled": Ailment("ok", "every run here has a supervisor, or is over"),
    "runs.orphaned": Ailment("warn", "an engine runs without its supervisor", "ttx adopt RUN, or ttx down RUN"),
    "runs.lost": Ailment("warn", "a run's supervisor and engine are gone, its record is open", "ttx down RUN"),
    "runs.unread": Ailment("warn", "a run's state cannot be read", "see: ttx status"),
    "containers.answers": Ailment("ok", "the container engine tells its containers"),
    "containers.absent": Ailment("note", "the container engine is not installed", "only arms that run in it need it"),
    "containers.unasked": Ailment(
        "warn", "the container engine does not tell its containers, which may have cards; the sentence says why"
    ),
    "containers.hangs": Ailment(
        "bad", "the container engine did not answer in time", "see: systemctl status docker; restart it"
    ),
    "disks.fine": Ailment("ok", "there is room"),
    "disks.low": Ailment("warn", "less than 20 GB are free", "see: ttx cache ls --du"),
    "disks.full": Ailment(
        "bad",
        "less is free than the floor at which engines are stopped (2 GB; 0.5 GB for the state folder)",
        "see: ttx cache ls --du",
    ),
    "disks.inodes": Ailment("bad", "fewer than 1000 files can still be made", "find what made so many: du --inodes"),
    "disks.read-only": Ailment(
        "bad", "the file system is mounted read-only: engines end late with errno 30 (tt-metal#46878)", "see: dmesg"
    ),
    "kernel.quiet": Ailment("ok", "this boot's kernel messages tell of nothing that matters here"),
    "kernel.oom-kill": Ailment("warn", "the kernel killed processes for want of memory", "see: journalctl -k -b"),
    "kernel.pin-failure": Ailment(
        "warn", "tt-kmd could not pin memory for a card", "see: journalctl -k -b; is there enough free memory?"
    ),
    "kernel.driver": Ailment(
        "warn", "tt-kmd could not talk to a card's firmware", "see: journalctl -k -b | grep tenstorrent"
    ),
    "kernel.hung-task": Ailment("warn", "a process hung in the kernel", "see: journalctl -k -b; ps -eo pid,stat,wchan"),
    "kernel.unread": Ailment(
        "warn", "the kernel's messages could not be read", "run it as root, or join the group systemd-journal"
    ),
    "kernel.leaks-pins": Ailment(
        "warn",
        "kernels 6.11 to 6.12.0 leak pinned pages (kernel bugzilla 219427, llama.cpp#9988), unless the distribution"
        " mended its own",
        "run 6.12.1 or newer",
    ),
    "memory.fine": Ailment("ok", "what nobody accounts for is below the limit"),
    "memory.reboot": Ailment(
        "bad",
        "REBOOT RECOMMENDED: memory is lost, and nobody is left who could give it back",
        "reboot; if it is not lost pages but a driver's own, raise TTX_LEAK_REBOOT_MB",
    ),
    "memory.holder": Ailment(
        "warn",
        "memory is unaccounted for, and somebody has a card: it may be theirs",
        "ask again when they have ended",
    ),
    "memory.blind": Ailment(
        "warn",
        "memory is unaccounted for, and who has the cards could not be learned completely",
        "run ttx doctor as root, outside containers",
    ),
    "memory.unclear": Ailment(
        "warn",
        "memory may be unaccounted for: swap cache or a balloon may be inside other lines or beside them, and free"
        " pages that CPUs keep are for root alone to see",
        "ask again as root; swap cache goes with: swapoff -a",
    ),
    "memory.elsewhere": Ailment(
        "warn", "memory is unaccounted for, and neither a card nor its driver is here to have taken it"
    ),
    "memory.pins": Ailment(
        "warn",
        "pages are pinned for devices although nobody has a card (nr_foll_pin_acquired, nr_foll_pin_released)",
        "if no other driver pins memory here (VFIO, RDMA), reboot",
    ),
    "memory.low": Ailment(
        "bad", "less memory is available than the floor at which engines are stopped (1 GB)", "stop what takes it"
    ),
    "memory.limited": Ailment(
        "warn",
        "a cgroup allows this process less than the host has: an engine that it starts as a process is killed there",
        "start it from a shell or unit without MemoryMax= (systemd.resource-control(5))",
    ),
    "memory.unknown": Ailment("warn", "nothing can be said about lost memory; the sentence says why"),
    "probe.late": Ailment(
        "bad",
        "something did not answer in time: a card, a daemon or a file system hangs",
        "see: ps -eo pid,stat,wchan:30,args | awk '$2 ~ /D/'",
    ),
    "probe.failed": Ailment("warn", "something could not be looked at"),
}
"""Code -> level, meaning and way out."""


def finding(code: str, text: str, *, subject: str = "", hint: str | None = None) -> Finding:
    """Make a finding; its level, and its hint where none is given, are those of its code."""
    known = CODES[code]
    return Finding(code, known.level, text, known.way_out if hint is None else hint, subject)
