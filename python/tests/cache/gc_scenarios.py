"""What protects a cache from gc: each scenario makes one directory that one thing alone protects, and returns it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

from gc_kit import BUS_DOWN, INPUTS, Host, age, entry

from ttstack.arm.key import cache_key
from ttstack.arm.load import load
from ttstack.cache.lock import KeyLock
from ttstack.cache.marker import key_of
from ttstack.cache.types import MARKER, TRASH, USED
from ttstack.host.containers import Answer
from ttstack.host.process import identify
from ttstack.slots.lock import try_lock, write_note
from ttstack.slots.take import guard_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def arm_installed(host: Host) -> Path:
    host.arm("prod")
    return host.cache(inputs=dict(cache_key(load("prod", host.sources.shelves[0])).inputs))


def arm_kernels(host: Host) -> Path:
    host.arm("prod")
    return host.jit("prod-sim")


def arm_named(host: Host) -> Path:
    (host.base / "mine").mkdir()
    file = str(host.arm("mine", folder=host.base / "mine"))
    host.sources = replace(host.sources, arms=((file, host.sources.shelves[0]),))
    return host.cache(inputs=dict(cache_key(load(file, host.sources.shelves[0])).inputs))


def docker_mounts(host: Host) -> Path:
    folder = host.jit("a-b")
    host.containers["docker"] = [entry(str(folder))]
    return folder


def podman_mounts(host: Host) -> Path:
    folder = host.jit("a-b")
    host.containers["podman"] = [entry(str(folder))]
    return folder


def container_in_state(status: str) -> Callable[[Host], Path]:
    def make(host: Host) -> Path:
        folder = host.jit("a-b")
        host.containers["docker"] = [entry(str(folder), State={"Status": status})]
        return folder

    return make


def container_above(host: Host) -> Path:
    folder = host.jit("a-b")
    host.containers["docker"] = [entry(str(host.base))]
    return folder


def container_below(host: Host) -> Path:
    folder = host.cache()
    host.containers["docker"] = [entry(str(folder / "P150"))]
    return folder


def container_by_link(host: Host) -> Path:
    folder = host.jit("a-b")
    (host.base / "l").symlink_to(folder)
    host.containers["docker"] = [entry(str(host.base / "l"))]
    return folder


def container_volume(host: Host) -> Path:
    folder = host.jit("a-b")
    volume = {"Type": "volume", "Name": "weights", "Source": "/var/lib/docker/volumes/weights/_data"}
    host.containers["docker"] = [entry(State={"Status": "created"}, Mounts=[volume])]
    host.volumes["weights"] = {"type": "none", "o": "bind", "device": str(folder)}
    return folder


def container_asked_for(host: Host) -> Path:
    folder = host.jit("a-b")
    host.containers["podman"] = [entry(HostConfig={"Binds": [f"{folder}:/x:ro"]}, State={"Status": "configured"})]
    return folder


def container_label(host: Host) -> Path:
    folder = host.cache()
    host.containers["docker"] = [entry(Config={"Labels": {"ttstack.cache": folder.name}})]
    return folder


def container_late(host: Host) -> Path:
    folder = host.jit("a-b")

    def hook(argv: Sequence[str]) -> None:
        if argv[0] == "podman":  # the last that is asked in the first look
            host.containers["docker"] = [entry(str(folder))]

    host.containers["docker"] = []
    host.hook = hook
    return folder


def engine_fails_late(host: Host) -> Path:
    folder = host.cache()

    def hook(argv: Sequence[str]) -> None:
        if argv[0] == "podman":
            host.containers["docker"] = TimeoutError()

    host.containers["docker"] = []
    host.hook = hook
    return folder


def used_meanwhile(host: Host) -> Path:
    folder = host.cache()
    host.boot_systemd()

    def hook(argv: Sequence[str]) -> None:
        if argv[0] == "systemctl":  # who is asked once the directories were looked at
            (folder / USED).touch()
            host.hook = lambda _: None

    host.hook = hook
    return folder


def slot_of_engine(host: Host) -> Path:
    folder = host.cache()
    host.slot(cache=folder.name)
    return folder


def slot_of_engine_kernels(host: Host) -> Path:
    folder = host.jit("held-ttnn-1")
    host.slot(cache="0" * 16, arm="held")
    return folder


def slot_dirty(host: Host) -> Path:
    folder = host.cache()
    host.slot(cache=folder.name, state="dirty")
    return folder


def slot_of_older_ttx(host: Host) -> Path:
    folder = host.cache()
    host.slot(cache="")
    return folder


def slot_without_name(host: Host) -> Path:
    folder = host.cache()
    for key in host.slot(cache="0" * 16).keys.values():
        write_note(key.lock, None)
    return folder


def slot_of_program(host: Host) -> Path:
    folder = host.cache()
    words = ["sh", "-c", "echo up; read end"]
    pipe = subprocess.PIPE
    program = subprocess.Popen(words, stdin=pipe, stdout=pipe, env={"TT_CACHE_PATH": str(folder), "PATH": os.defpath})
    host.programs.append(program)
    assert program.stdout
    program.stdout.readline()
    process = identify(program.pid)
    assert process
    host.slot(cache="", kind="program", process=process)
    return folder


def card_that_is_gone(host: Host) -> Path:
    folder = host.cache()
    host.slot(cache=folder.name)
    roots = host.sources.places.roots
    shutil.rmtree(roots.sys / "class" / "tenstorrent")
    shutil.rmtree(roots.dev / "tenstorrent")
    return folder


def slots_unreadable(host: Host) -> Path:
    folder = host.cache()
    host.slot(cache="0" * 16)
    host.keep(try_lock(guard_path(host.sources.places.locks)))
    return folder


def seed_source(host: Host) -> Path:
    folder = host.cache()
    host.cache("new", state="building", alive=True, seeded_from=folder.name)
    return folder


def build_without_lock(host: Host) -> Path:
    return host.cache(state="building", alive=True)


def build_by_its_lock(host: Host) -> Path:
    folder = host.cache(state="building")
    host.keep(KeyLock(host.root, folder.name).exclusive())
    return folder


def run_by_its_lock(host: Host) -> Path:
    folder = host.cache()
    host.keep(KeyLock(host.root, folder.name).shared())
    return folder


def just_used(host: Host) -> Path:
    return host.cache(days=0.02)  # half an hour


def used_in_future(host: Host) -> Path:
    return host.cache(days=-50)


def used_not_long_ago(host: Host) -> Path:
    return host.cache(days=29)


def unreadable_marker(host: Host) -> Path:
    folder = host.cache()
    (folder / MARKER).write_text("{")
    return age(folder, 40)


def marker_of_another(host: Host) -> Path:
    folder = host.cache()
    other = host.root / key_of(INPUTS | {"env": {"W": "other"}})
    folder.rename(other)
    return other


def marker_that_is_a_link(host: Host) -> Path:
    folder = host.cache()
    (folder / MARKER).rename(host.base / "marker")
    (folder / MARKER).symlink_to(host.base / "marker")
    return folder


def folder_that_is_a_link(host: Host) -> Path:
    folder = host.cache()
    real = host.base / "elsewhere" / folder.name
    real.parent.mkdir()
    folder.rename(real)
    folder.symlink_to(real)
    return folder


def trash_is_a_link(host: Host) -> Path:
    (host.base / "home").mkdir()
    (host.root / TRASH).symlink_to(host.base / "home")
    return host.cache()


def docker_silent(host: Host) -> Path:
    folder = host.root / TRASH / "0123456789abcdef.00"
    folder.mkdir(parents=True)
    host.containers["docker"] = Answer(1, "", "Cannot connect to the Docker daemon")
    return folder


def systemctl_fails(host: Host) -> Path:
    host.boot_systemd()
    host.systemctl = Answer(1, "", BUS_DOWN)
    return host.cache()


def systemctl_hangs(host: Host) -> Path:
    host.boot_systemd()
    host.systemctl = TimeoutError()
    return host.cache()


def arm_is_broken(host: Host) -> Path:
    host.arm("prod").write_text("schema = 1\n[cards")
    return host.cache()


def no_arms_at_all(host: Host) -> Path:
    host.sources = replace(host.sources, shelves=(), no_arms="there is no folder of arms here")
    return host.cache()
