"""Disks that are made here, and what a build wants of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from seed_kit import INPUTS

from ttstack.cache import room
from ttstack.cache.marker import key_of
from ttstack.cache.reserve import Allowance, Wanted
from ttstack.host.errors import HostError
from ttstack.host.filesystems import Filesystem

if TYPE_CHECKING:
    from pathlib import Path

GB = 1_000_000_000
NOTHING = Allowance(files=0, jit_bytes=0, jit_files=0, container_bytes=0, container_files=0)
BESIDE = Allowance(files=100, jit_bytes=3 * GB, jit_files=200, container_bytes=GB, container_files=10)


@dataclass
class Disks:
    """The disks of a host, by the folders that are on them: the longest that fits."""

    of: dict[Path, Filesystem]
    asked: list[str]

    def put(self, folder: Path, name: str, free: float, files: int | None = None, *, read_only: bool = False) -> None:
        self.of[folder] = Filesystem(name, "ext4", f"/mnt/{name}", int(free * GB), files, read_only)

    def find(self, path: Path, _proc: Path) -> Filesystem:
        self.asked.append(path.name)
        found = [folder for folder in self.of if path.is_relative_to(folder)]
        if not found:
            raise HostError(f"no disk for {path}")
        return self.of[max(found, key=lambda folder: len(folder.parts))]


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Disks:
    made = Disks({}, [])
    monkeypatch.setattr(room, "filesystem_of", made.find)
    return made


def want_of(root: Path, expected: float, allowance: Allowance = NOTHING, inputs: dict[str, object] = INPUTS) -> Wanted:
    key = key_of(inputs)
    return Wanted(
        arm="mine",
        key=key,
        folder=root / key,
        jit=root / "jit/mine-ttnn-0.81.1",
        container_root=None,
        expected=int(expected * GB),
        files=allowance.files,
        basis="catalogue",
        allowance=allowance,
    )
