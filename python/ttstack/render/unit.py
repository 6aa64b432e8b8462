"""Launch -> a complete systemd unit, for hosts without NixOS; docs/reference/unit.md has the why of each directive."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from ttstack.render.checks import check_name
from ttstack.render.docker import docker_argv, process_argv
from ttstack.render.errors import RenderError
from ttstack.render.systemd import check_text, command_line, encode, environment_line, quote

if TYPE_CHECKING:
    from ttstack.render.launch import Launch

STOP_MARGIN_S = 60
"""What systemd waits longer than the engine's grace, so that it is never systemd that kills it."""

ENGINE_OWNER = "1000:1000"
"""Whom a container's engine runs as, hence who owns its caches: the user of Tenstorrent's own images
(tt-inference-server, Dockerfile: container_app_user)."""

_PLAIN = re.compile(r"/[A-Za-z0-9/._+:@-]*")  # needs no quoting in any directive

# $1 is docker, $2 the container's name, $3 the grace.
_REFUSE_STALE = (
    'if "$1" container inspect "$2" >/dev/null 2>&1; then '
    'echo "there is a container $2 already; if nobody uses it: $1 stop -t $3 $2 && $1 rm $2" >&2; exit 1; fi'
)


def unit_name(launch: Launch) -> str:
    """Name the unit's file."""
    return f"{launch.name}.service"


def exec_start(launch: Launch, program: str | None = None) -> tuple[str, ...]:
    """Give the argument list of ``ExecStart=``; ``program`` is the path of docker or podman."""
    if launch.runtime == "process":
        return process_argv(launch)
    return docker_argv(launch, "unit", program or f"/usr/bin/{launch.runtime}")


def unit_text(  # noqa: PLR0913 - what an arm says beside its launch, and two choices with defaults
    launch: Launch,
    *,
    arm: str,
    description: str,
    boot_timeout_s: int,
    program: str | None = None,
    owner: str = ENGINE_OWNER,
) -> str:
    """Write the unit.

    ``program`` is the path of docker or podman, by default in ``/usr/bin``; ``owner`` (UID:GID) is whom the folders
    belong to that a container's engine writes to. Raises RenderError for what a unit cannot hold.
    """
    import jinja2  # noqa: PLC0415 - slow to import, and only this needs it

    argv = exec_start(launch, program)
    client, grace = argv[0], str(launch.stop_grace_s)
    stale = ("/bin/sh", "-c", _REFUSE_STALE, "sh", client, launch.name, grace)
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 - a unit is no HTML; each value is encoded before it comes here
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string(files(__package__).joinpath("unit.service.j2").read_text(encoding="utf-8"))
    text = template.render(
        name=check_name(launch.name),
        arm=_one_line(arm),
        description=_one_line(description or f"the arm {arm}"),
        runtime=launch.runtime,
        secrets=sorted(launch.secrets),
        make_folders=encode((*_maker(launch, owner), "--", *_caches(launch))),
        start=command_line(argv),
        start_pre=command_line(stale),
        stop=encode((f"-{client}", "stop", "-t", grace, launch.name)),
        folders=[quote(folder) for folder in _folders(launch)],
        environment=[environment_line(name, value) for name, value in sorted(launch.env.items())],
        devices=[_plain(device.source) for device in launch.devices],
        boot_timeout_s=boot_timeout_s,
        stop_grace_s=launch.stop_grace_s,
        stop_timeout_s=launch.stop_grace_s + STOP_MARGIN_S,
    )
    check_text(text)
    return text


def _folders(launch: Launch) -> list[str]:
    """List the host's folders that the launch needs."""
    if launch.runtime == "process":
        return _caches(launch)
    return list(dict.fromkeys(mount.source for mount in launch.mounts if not mount.source.startswith("/dev/")))


def _caches(launch: Launch) -> list[str]:
    """List those of the folders that the engine writes to: nobody else makes them."""
    if launch.runtime == "process":
        return [launch.cache_dir, launch.jit_dir]
    return [mount.source for mount in launch.mounts if not mount.read_only and not mount.source.startswith("/dev/")]


def _maker(launch: Launch, owner: str) -> tuple[str, ...]:
    if launch.runtime == "process":
        return ("+/bin/mkdir", "-p")
    match = re.fullmatch(r"([0-9]+):([0-9]+)", owner)
    if match is None:
        raise RenderError(f"the owner {owner!r} is not of the form UID:GID, e.g. {ENGINE_OWNER}")
    return ("+/usr/bin/install", "-d", "-m", "0755", "-o", match[1], "-g", match[2])


def _one_line(text: str) -> str:
    """Make a description one line; a backslash at its end would join the next directive to it."""
    return " ".join(text.split()).rstrip("\\").replace("%", "%%")


def _plain(path: str) -> str:
    if not _PLAIN.fullmatch(path):
        raise RenderError(f"the device node {path!r} cannot stand in DeviceAllow=")
    return path
