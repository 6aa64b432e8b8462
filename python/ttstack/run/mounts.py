"""The folders that a container mounts: docker refuses a missing one, and an engine a cache that it cannot write."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.host.errors import HostError
from ttstack.host.files import make_directory
from ttstack.run.errors import RunRefusedError

if TYPE_CHECKING:
    from ttstack.render.launch import Launch

_ENGINE_USER = 1000  # default of services.tenstorrent-serving.engineUser


def owner_of(user: str) -> int:
    """Say whose the caches must be, for an image whose engine runs as ``user``; "" is root.

    A name stands in the image's own passwd file, so for one it is the default of the serving module.
    """
    name = user.partition(":")[0]
    if not name:
        return 0
    return int(name) if name.isascii() and name.isdigit() else _ENGINE_USER


def make_mounts(launch: Launch, cache: Path, owner: int) -> None:
    """Make the cache folders for the engine's user; refuse any other source that is missing.

    All capabilities are dropped, so that even root in a container writes only what is root's. Raises RunRefusedError
    and HostError.
    """
    for mount in launch.mounts:
        source = Path(mount.source)
        if not mount.read_only and source.is_relative_to(cache):
            _make(source, owner)
        elif not source.exists():
            raise RunRefusedError(
                f"{source} is to be mounted at {mount.target}, and is not there",
                hint="make it; ttx makes nothing outside the cache folder",
                reason="mount_missing",
            )


def _make(folder: Path, owner: int) -> None:
    new = not folder.is_dir()
    make_directory(folder)
    if new and os.geteuid() == 0:
        try:
            os.chown(folder, owner, -1)
        except OSError as error:
            raise HostError(f"cannot give {folder} to user {owner}: {error.strerror}") from error
    seen = folder.stat()
    writable = seen.st_mode & stat.S_IWUSR if seen.st_uid == owner else seen.st_mode & stat.S_IWOTH
    if not writable and os.geteuid() == 0:
        raise RunRefusedError(
            f"the engine runs as user {owner} and cannot write {folder}, which is user {seen.st_uid}'s",
            hint=f"give it to that user: chown -R {owner} {folder}",
            reason="cache_unwritable",
        )
