"""Units that use a cache: each scenario makes one directory that one unit alone protects, and returns it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gc_kit import Host


def unit_names_key(host: Host) -> Path:
    folder = host.cache()
    host.unit(
        "ttx-prod.service", ExecStart=f"{{ path=/usr/bin/docker ; argv[]=/x --label ttstack.cache={folder.name} }}"
    )
    return folder


def unit_by_link(host: Host) -> Path:
    folder = host.jit("prod-ttnn-1")
    (host.base / "other").symlink_to(host.root)
    host.unit("engine.service", ExecStart=f"{{ argv[]=/opt/run --kernels {host.base}/other/jit/prod-ttnn-1 }}")
    return folder


def unit_mounts_above(host: Host) -> Path:
    folder = host.jit("prod-ttnn-1")
    host.unit("engine.service", ExecStart=f"{{ argv[]=/usr/bin/docker run -v {host.base}:/host:ro image }}")
    return folder


def unit_variable(host: Host) -> Path:
    folder = host.jit("prod-ttnn-1")
    host.unit(
        "engine.service",
        ExecStart="{ argv[]=/usr/bin/podman run --mount type=bind,src=${KERNELS}/jit,dst=/x image }",
        Environment=f"A=1 KERNELS={host.root}",
    )
    return folder


def unit_environment_file(host: Host) -> Path:
    folder = host.cache()
    file = host.base / "engine.env"
    file.write_text(f"TT_CACHE_PATH={folder}\n")
    host.unit("engine.service", ExecStart="{ argv[]=/opt/vllm }", EnvironmentFiles=f"{file} (ignore_errors=no)")
    return folder


def unit_script(host: Host) -> Path:
    folder = host.cache()
    script = host.base / "start"
    script.write_text(f"#!/bin/sh\nexec docker run -v {folder}:/cache image\n")
    host.unit("engine.service", ExecStart=f"{{ path={script} ; argv[]={script} ; ignore_errors=no }}")
    return folder


def unit_template(host: Host) -> Path:
    folder = host.cache()
    host.boot_systemd()
    host.unit_file("engine@.service", f"[Service]\nExecStart=/usr/bin/docker run -v {host.root}/%i:/cache image\n")
    return folder


def unit_not_reloaded(host: Host) -> Path:
    folder = host.cache()
    dropin = host.unit_file("e.service.d/10.conf", f"[Service]\nExecStart=\nExecStart=/x {folder}\n")
    host.unit("e.service", ExecStart="{ argv[]=/x }", NeedDaemonReload="yes", DropInPaths=str(dropin))
    return folder


def unit_still_runs(host: Host) -> Path:
    folder = host.cache()
    host.unit("e.service", ExecStart="{ argv[]=/x }", MainPID="77")
    (host.base / "proc" / "77").mkdir(parents=True)
    (host.base / "proc" / "77" / "environ").write_bytes(b"A=1\0TT_CACHE_PATH=" + os.fsencode(folder) + b"\0")
    return folder


def unit_without_systemd(host: Host) -> Path:
    folder = host.cache()
    host.unit_file("ttx-prod.service", f'[Service]\nExecStart="/usr/bin/docker" \\\n "-v" "{folder}:/x"\n')
    return folder
