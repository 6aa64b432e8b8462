"""Launch -> docker (or podman) command, and back; the order is that of docs/reference/launch.md."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, get_args

from ttstack.render.checks import check_environment, check_image, check_name, check_node, check_path
from ttstack.render.errors import RenderError
from ttstack.render.launch import CACHE_LABEL, CACHE_TARGET, JIT_TARGET, Device, Launch, Mount, Port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Mode = Literal["unit", "up"]
"""``unit``: stays in the foreground and removes the container at the end; ``up``: leaves it running behind."""

_MODE_FLAGS: dict[Mode, str] = {"unit": "--rm", "up": "--detach"}
# Options that are the same for every launch, around --stop-timeout.
_BEFORE = (("--pull", "never"), ("--ipc", "host"), ("--cap-drop", "ALL"), ("--security-opt", "no-new-privileges"))
_AFTER = (("--log-driver", "json-file"), ("--log-opt", "max-size=64m"), ("--log-opt", "max-file=4"))
_VARIABLE = ("--name", "--stop-timeout", "--label", "--device", "--mount", "--publish", "--env")


def docker_argv(launch: Launch, mode: Mode, program: str | None = None) -> tuple[str, ...]:
    """Write the command that starts a launch.

    ``program`` is what to run in place of the runtime's own name, a path for instance. Raises RenderError for the
    process runtime and for what docker would read otherwise than it is meant.
    """
    if launch.runtime == "process":
        hint = "its command: ttx arm render ARM --as argv"
        raise RenderError(f"{launch.name} runs as a process, not in a container", hint=hint)
    if mode not in get_args(Mode):
        raise RenderError(f"unknown mode {mode!r}")
    if not launch.argv:
        raise RenderError(f"{launch.name} has no command for the engine")
    check_environment(launch.env, launch.secrets)
    words = [program or launch.runtime, "run", _MODE_FLAGS[mode]]
    for name, value in _options(launch):
        words += [name, value]
    return (*words, check_image(launch.image), *launch.argv)


def process_argv(launch: Launch) -> tuple[str, ...]:
    """Give the command of a launch that runs as a process. Raises RenderError for the other runtimes."""
    if launch.runtime != "process":
        raise RenderError(f"{launch.name} runs in a container ({launch.runtime}), not as a process")
    if not launch.argv:
        raise RenderError(f"{launch.name} has no command for the engine")
    check_environment(launch.env, launch.secrets)
    return launch.argv


def _options(launch: Launch) -> Iterator[tuple[str, str]]:
    yield "--name", check_name(launch.name)
    yield from _BEFORE
    yield "--stop-timeout", str(launch.stop_grace_s)
    yield from _AFTER
    for key, value in sorted(launch.labels.items()):
        if not key or "=" in key:
            raise RenderError(f"{key!r} cannot be the key of a label")
        yield "--label", f"{key}={value}"
    for device in launch.devices:
        yield "--device", f"{check_node(device.source)}:{check_node(device.target)}"
    for mount in launch.mounts:
        source, target = check_path(mount.source, "a mount's source"), check_path(mount.target, "a mount's target")
        yield "--mount", f"type=bind,src={source},dst={target}{',readonly' if mount.read_only else ''}"
    for port in launch.ports:
        host = f"[{port.host}]" if ":" in port.host else port.host
        yield "--publish", f"{host}:{port.outside}:{port.inside}"
    for key, value in sorted(launch.env.items()):
        yield "--env", f"{key}={value}"
    for key in sorted(launch.secrets):
        yield "--env", key


def parse_docker(argv: Sequence[str]) -> Launch:
    """Read a command that ``docker_argv`` wrote, in any order of its options.

    ``--option=value`` is read as ``--option value``. Raises RenderError for any option that this project does not
    write, for a missing one, and for a fixed one with another value: such a command has no Launch.
    """
    runtime = _runtime(argv)
    values, mode_flags, rest = _split(argv[2:])
    if len(mode_flags) != 1:
        raise RenderError("the command must have exactly one of --rm and --detach")
    _check_fixed(values)
    image, *command = rest or [""]
    check_image(image)
    if not command:
        raise RenderError("the command has no engine command behind the image")
    env, secrets = _environment(values["--env"])
    labels = dict(_pair("--label", text, "=") for text in values["--label"])
    mounts = tuple(_mount(text) for text in values["--mount"])
    return Launch(
        name=check_name(_single(values, "--name")),
        runtime=runtime,
        image=image,
        argv=tuple(command),
        env=env,
        secrets=secrets,
        devices=tuple(Device(*_pair("--device", text, ":")) for text in values["--device"]),
        mounts=mounts,
        ports=tuple(_port(text) for text in values["--publish"]),
        labels=labels,
        stop_grace_s=_whole("--stop-timeout", _single(values, "--stop-timeout")),
        cache_key=labels.get(CACHE_LABEL, ""),
        cache_dir=next((mount.source for mount in mounts if mount.target == CACHE_TARGET), ""),
        cache_path=env.get("TT_CACHE_PATH", ""),
        jit_dir=next((mount.source for mount in mounts if mount.target == JIT_TARGET), ""),
    )


def _runtime(argv: Sequence[str]) -> Literal["docker", "podman"]:
    name = PurePosixPath(argv[0]).name if argv else ""
    if name not in {"docker", "podman"} or argv[1:2] not in (["run"], ("run",)):
        raise RenderError("the command does not start with `docker run` or `podman run`")
    return "podman" if name == "podman" else "docker"


def _split(words: Sequence[str]) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Split what follows ``docker run`` into options, mode flags, and the image with the engine's command."""
    known = {*_VARIABLE, *(name for name, _ in (*_BEFORE, *_AFTER))}
    values: dict[str, list[str]] = {name: [] for name in known}
    flags: list[str] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        name, attached, value = word.partition("=")
        if word in _MODE_FLAGS.values():
            flags.append(word)
        elif name not in known:
            raise RenderError(f"unknown option {name}", hint="this project writes no such option")
        elif attached:
            values[name].append(value)
        elif at + 1 < len(words):
            at += 1
            values[name].append(words[at])
        else:
            raise RenderError(f"{name} has no value")
        at += 1
    return values, flags, list(words[at:])


def _check_fixed(values: dict[str, list[str]]) -> None:
    fixed: dict[str, list[str]] = {}
    for name, value in (*_BEFORE, *_AFTER):
        fixed.setdefault(name, []).append(value)
    for name, expected in fixed.items():
        if values[name] != expected:
            found = " ".join(values[name]) or "nothing"
            raise RenderError(f"{name} must be {' '.join(expected)}, not {found}")


def _single(values: dict[str, list[str]], name: str) -> str:
    if len(values[name]) != 1:
        raise RenderError(f"{name} must be given once, not {len(values[name])} times")
    return values[name][0]


def _pair(option: str, text: str, separator: str) -> tuple[str, str]:
    left, found, right = text.partition(separator)
    if not found or not left or (separator == ":" and (not right or ":" in right)):
        raise RenderError(f"{option} {text!r} is not of the form A{separator}B")
    return left, right


def _environment(texts: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    env: dict[str, str] = {}
    secrets: list[str] = []
    for text in texts:
        name, has_value, value = text.partition("=")
        if name in env:
            raise RenderError(f"--env {name} is given twice")
        if has_value:
            env[name] = value
        else:
            secrets.append(name)
    check_environment(env, tuple(secrets))
    return env, tuple(secrets)


def _mount(text: str) -> Mount:
    match = re.fullmatch(r'type=bind,src=(/[^,"]*),dst=(/[^,"]*)(,readonly)?', text)
    if match is None:
        raise RenderError(f"--mount {text!r} is not of the form type=bind,src=S,dst=T[,readonly]")
    return Mount(match[1], match[2], read_only=bool(match[3]))


def _port(text: str) -> Port:
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:\[\]]+)):([0-9]+):([0-9]+)", text)
    if match is None:
        raise RenderError(f"--publish {text!r} is not of the form HOST:OUTSIDE:INSIDE")
    return Port(match[1] or match[2], int(match[3]), int(match[4]))


def _whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise RenderError(f"{option} {text!r} is not a number of seconds")
    return int(text)
