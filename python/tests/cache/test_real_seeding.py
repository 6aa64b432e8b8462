"""Seeding on real file systems: reflinks, links that the kernel refuses, writes through a link."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from real_disks import MIB, disks, free_bytes, sound, until_refused
from seed_kit import INPUTS, INSIDE, NAMES, begin, builder, complete, files_of, finish, tensor, with_env, write_files

from ttstack.cache import build, settle
from ttstack.cache.build import Start
from ttstack.cache.errors import CacheError
from ttstack.cache.manifest import scan
from ttstack.cache.marker import key_of, read_marker
from ttstack.cache.seed import choose, seed
from ttstack.cache.seed_check import check_seeds
from ttstack.cache.survey import standing_of
from ttstack.host.filesystems import filesystem_of

if TYPE_CHECKING:
    from pathlib import Path

    from real_disks import Disks


__all__ = ["disks"]
pytestmark = pytest.mark.host

FIRST = f"{INSIDE}/{NAMES[0]}"
BF4 = with_env(HEAD_BF4="1")


@pytest.mark.parametrize("by_rename", [True, False])
def test_reflinks_on_xfs(disks: Disks, *, by_rename: bool) -> None:
    root = disks.make("xfs", 320 * MIB, "-m", "reflink=1")
    whole = begin(root, INPUTS)
    write_files(whole, os.urandom(20 * MIB))
    finish(whole)
    os.chown(whole / FIRST, 1000, 1000)
    content, target = files_of(whole), begin(root, BF4)
    os.sync()
    before = free_bytes(root)
    done = seed(whole, target, by_rename=by_rename)
    os.sync()
    assert done.counts == {"reflink": 2}
    assert before - free_bytes(root) < MIB  # 40 MiB of files
    assert scan(target) == scan(whole)
    assert files_of(target) == content
    assert (target / FIRST).stat().st_uid == 1000
    assert not (target / FIRST).samefile(whole / FIRST)
    (target / FIRST).write_bytes(tensor(b"other"))  # an engine that writes in place
    seen = check_seeds(target)
    assert (seen.changed, seen.replaced) == ((), (FIRST,))
    sound(whole, content)


def test_no_reflinks_on_an_xfs_without_them(disks: Disks) -> None:
    root = disks.make("xfs", 320 * MIB, "-m", "reflink=0")
    whole, one, two = complete(root, INPUTS), begin(root, BF4), begin(root, with_env(HEAD_BF4="2"))
    assert seed(whole, one, by_rename=True).counts == {"hardlink": 2}
    assert seed(whole, two, by_rename=False).counts == {"copy": 2}
    assert files_of(one) == files_of(two) == files_of(whole)


def test_a_write_through_a_real_hard_link_breaks_both(disks: Disks, tmp_path: Path) -> None:
    root, locks = disks.make("ext4", 48 * MIB), tmp_path / "locks"
    whole = complete(root, INPUTS)
    start = Start(
        root=root,
        locks=locks,
        key=key_of(BF4),
        inputs=BF4,
        builder=builder("run-b"),
        by_rename=True,
        in_name=("HEAD_BF4",),
    )
    held = build.begin(start, lambda _: 0)
    assert held.warmth == "seed"
    (held.folder / FIRST).write_bytes(tensor(b"the same length or not"))
    with pytest.raises(CacheError, match="in place"):
        settle.complete(root, key_of(BF4), "run-b", held.lock)
    os.close(held.lock)
    assert {standing_of(folder).standing for folder in (whole, held.folder)} == {"broken"}
    assert choose(root, with_env(HEAD_BF4="2"), in_name=("HEAD_BF4",), checkpoint="").key is None


def test_from_one_disk_to_another_it_is_a_copy(disks: Disks) -> None:
    one, two = disks.make("ext4", 48 * MIB, name="one"), disks.make("xfs", 320 * MIB, name="two")
    whole, target = complete(one, INPUTS), begin(two, BF4)
    assert seed(whole, target, by_rename=True).counts == {"copy": 2}
    assert scan(target) == scan(whole)
    assert filesystem_of(one).id != filesystem_of(two).id


def test_a_file_with_as_many_names_as_ext4_allows_is_copied(disks: Disks) -> None:
    root = disks.make("ext4", 64 * MIB)
    whole, target = complete(root, INPUTS), begin(root, BF4)
    (root / "names").mkdir()
    until_refused(errno.EMLINK, lambda at: os.link(whole / FIRST, root / "names" / str(at)))
    assert seed(whole, target, by_rename=True).counts == {"copy": 1, "hardlink": 1}
    assert files_of(target) == files_of(whole)


def test_links_to_files_of_others_that_the_kernel_refuses_are_copies(disks: Disks, tmp_path: Path) -> None:
    with open("/proc/sys/fs/protected_hardlinks") as file:  # noqa: PTH123 - a file of the kernel
        if file.read().strip() != "1":
            pytest.skip("fs.protected_hardlinks is off here")
    root = disks.make("ext4", 48 * MIB)
    tmp_path.chmod(0o755)
    whole, target = complete(root, INPUTS), begin(root, BF4)
    os.chown(target, 65534, 65534)
    held = root / ".ttx-locks"
    held.mkdir()
    held.chmod(0o1777)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        answer = b"failed"
        try:
            for above in [*tmp_path.parents][:3]:
                above.chmod(0o755)
            os.setgid(65534)
            os.setuid(65534)
            answer = repr(seed(whole, target, by_rename=True).counts).encode()
        finally:
            os.write(write, answer)
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    assert os.read(read, 100) == b"{'copy': 2}"
    os.close(read)
    assert files_of(target) == files_of(whole)
    assert (target / FIRST).stat().st_uid == 65534
    marker = read_marker(target)
    assert marker is not None
