"""Calls to docker or podman, and what their answers mean."""

from __future__ import annotations

import json
import re
import shutil
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttstack.host.containers import Answer, run_command
from ttstack.host.errors import HostError
from ttstack.run.errors import RunError, RunRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ttstack.errors import TtxError
    from ttstack.render.launch import Launch

RUN_LABEL = "ttstack.run"
"""The label that says which run a container belongs to."""

DEADLINE_S = 20.0  # for each question: a daemon that hangs must not hang us
START_S = 300.0  # docker run: with a large image's first start the daemon unpacks nothing, yet may be busy with others
_LEFT_S = 30.0  # what the engine of containers may take beyond the grace

_OVER = frozenset({"created", "configured", "exited", "stopped", "dead"})  # no process runs in it


@dataclass(frozen=True, slots=True)
class Seen:
    """A container, as ``inspect`` shows it."""

    id: str
    name: str
    labels: Mapping[str, str]
    status: str
    pid: int  # of its first process on this host; 0 when it has none
    exit_code: int
    oom_killed: bool
    error: str  # why it could not be started
    env: Mapping[str, str]
    image: str  # digest of the image's configuration, without "sha256:"
    ports: tuple[tuple[str, int, int], ...]  # host address, port outside, port inside
    stop_timeout: int
    stop_signal: signal.Signals

    @property
    def over(self) -> bool:
        """Whether nothing runs in it."""
        return self.status in _OVER


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is here. ``user`` is what its engine runs as: "" for root."""

    id: str  # digest of its configuration, without "sha256:"
    user: str


@dataclass(frozen=True, slots=True)
class Client:
    """Asks one engine of containers. Every method raises RunRefusedError when it cannot be asked at all."""

    program: str

    def call(self, *words: str, seconds: float = DEADLINE_S) -> Answer:
        """Run ``PROGRAM WORDS...``. Other faults than those of the engine itself are in the answer."""
        try:
            answer = run_command([self.program, *words], seconds)
        except FileNotFoundError:
            raise self._missing() from None
        except TimeoutError:
            raise RunRefusedError(
                f"{self.program} did not answer `{self.program} {words[0]}` within {seconds:g} s",
                hint=f"look at its log: journalctl -u {self.program}",
                reason="runtime_slow",
            ) from None
        except OSError as error:
            raise RunRefusedError(f"{self.program} cannot be run: {error.strerror}", reason="runtime_missing") from None
        refusal = self._unreachable(answer) if answer.code else None
        if refusal is not None:
            raise refusal
        return answer

    def check(self) -> None:
        """Refuse when there is no such engine here, or it does not answer."""
        if shutil.which(self.program) is None:
            raise self._missing()
        answer = self.call("version", "--format", "{{.Server.Version}}" if self.program == "docker" else "{{.Version}}")
        if answer.code and "permission denied" in answer.err.lower():  # podman's own folders: it has no socket
            raise RunRefusedError(
                f"this user may not use {self.program}: {first_line(answer.err)}",
                hint=f"run ttx as root, or as a user for whom `{self.program} ps` works",
                reason="runtime_denied",
            )
        if answer.code:
            raise RunRefusedError(f"{self.program} does not work: {first_line(answer.err)}", reason="runtime_unusable")

    def image(self, reference: str) -> Image:
        """Look at an image that is here; RunRefusedError (``image_missing``) when it is not."""
        answer = self.call("image", "inspect", reference)
        if answer.code:
            raise self._no_image(reference)
        entry = _entries(self.program, answer.out)[0]
        return Image(_digest(str(entry.get("Id", ""))), str((entry.get("Config") or {}).get("User") or ""))

    def inspect(self, container: str) -> Seen | None:
        """Look at a container; None when it is not there. Raises HostError for an answer that is none."""
        answer = self.call("container", "inspect", container)
        if answer.code:
            if "no such" in answer.err.lower():
                return None
            raise HostError(f"{self.program} inspect failed: {first_line(answer.err)}")
        return _seen(_entries(self.program, answer.out)[0])

    def of_run(self, run: str) -> tuple[str, ...]:
        """List the ids of a run's containers, whatever their state. Raises HostError."""
        answer = self.call("ps", "--all", "--no-trunc", "--quiet", "--filter", f"label={RUN_LABEL}={run}")
        if answer.code:
            raise HostError(f"{self.program} ps failed: {first_line(answer.err)}")
        return tuple(answer.out.split())

    def stop(self, container: str, grace_s: int) -> None:
        """Ask a container to stop, and have it killed when it did not after its grace; wait for that."""
        self.call("stop", "-t", str(grace_s), container, seconds=grace_s + _LEFT_S)
        self.call("wait", container)

    def kill(self, container: str) -> None:
        """Kill all of a container and wait for its end."""
        self.call("kill", container)
        self.call("wait", container)

    def remove(self, container: str) -> bool:
        """Remove a container that is over; never by force. False when that did not work."""
        answer = self.call("rm", container)
        return answer.code == 0 or "no such" in answer.err.lower()

    def start_refusal(self, answer: Answer, launch: Launch) -> TtxError:
        """Say why ``run`` failed."""
        text = answer.err
        if "is already in use by" in text and "name" in text.lower():
            return self.name_taken(launch.name, self.inspect(launch.name))
        if re.search(r"no such image|unable to find image|image not known", text, re.IGNORECASE):
            return self._no_image(launch.image)
        if re.search(r"gathering device information|stat /dev/[^ ]*: no such file", text):
            node = re.search(r'custom device "([^"]+)"|stat (/[^ :]+):', text)
            which = next((part for part in node.groups() if part), "") if node else ""
            return RunError(
                f"the device node {which or launch.devices[0].source} is not there any more",
                hint="see: ttx slot ls; a reset makes the nodes anew",
                reason="node_missing",
            )
        if "port is already allocated" in text or "address already in use" in text:
            port = launch.ports[0]
            return RunError(
                f"port {port.outside} on {port.host} is in use",
                hint="stop who has it, or choose another `engine.port` for the arm",
                reason="port_busy",
            )
        return RunError(f"{self.program} did not start the container: {first_line(text)}", reason="engine_not_started")

    def name_taken(self, name: str, seen: Seen | None) -> RunRefusedError:
        """Say who has a container's name."""
        run = seen.labels.get(RUN_LABEL, "") if seen else ""
        if seen is not None and run:
            left = "is left over from" if seen.over else "belongs to"
            what, hint = f"the container {name} {left} run {run}", f"`ttx down {run}` settles it"
        else:
            which = f" ({seen.id[:12]}, {seen.status})" if seen else ""
            what = f"a container that is not ttx's has the name {name}{which}"
            hint = f"whoever made it may remove it: {self.program} ps --all --filter name={name}"
        return RunRefusedError(what, hint=hint, reason="name_taken")

    def _missing(self) -> RunRefusedError:
        return RunRefusedError(
            f"the arm runs in a container, and {self.program} is not installed",
            hint=f"install {self.program}, or give the arm another `engine.runtime`",
            reason="runtime_missing",
        )

    def _unreachable(self, answer: Answer) -> RunRefusedError | None:
        text = answer.err.lower()
        if "permission denied" in text and ("connect to" in text or "dial unix" in text):
            return RunRefusedError(
                f"this user may not talk to {self.program}",
                hint=f"add the user to the group {self.program} (and log in again), or run ttx as root",
                reason="runtime_denied",
            )
        if "cannot connect to podman" in text:  # CONTAINER_HOST, or podman-remote
            return RunRefusedError(
                "podman is to ask a service (CONTAINER_HOST), which does not run",
                hint="start it: systemctl start podman.socket; or unset CONTAINER_HOST",
                reason="runtime_down",
            )
        if "cannot connect to the docker daemon" in text or "is the docker daemon running" in text:
            return RunRefusedError(
                f"{self.program} is installed, but its daemon does not run",
                hint=f"start it: systemctl start {self.program}",
                reason="runtime_down",
            )
        return None

    def _no_image(self, reference: str) -> RunRefusedError:
        return RunRefusedError(
            f"{self.program} has no image {reference}, and ttx never pulls one",
            hint=f"load it: {self.program} load -i FILE (`nix build .#sim-image` makes the simulated engine's)",
            reason="image_missing",
        )


def first_line(text: str) -> str:
    """Give what an error says, without the words around it."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARN")]
    line = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it said nothing")
    return line.removeprefix("docker: ").removeprefix("Error response from daemon: ").removeprefix("Error: ")


def _digest(text: str) -> str:
    return text.removeprefix("sha256:")


def _entries(program: str, text: str) -> list[dict[str, Any]]:
    try:
        value: object = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        raise HostError(f"{program} inspect printed something else than a list")
    return value


def _seen(entry: dict[str, Any]) -> Seen:
    """Read one entry; docker and podman name these fields alike."""
    state: dict[str, Any] = entry.get("State") or {}
    config: dict[str, Any] = entry.get("Config") or {}
    pairs = (str(text).partition("=") for text in config.get("Env") or ())
    return Seen(
        id=str(entry.get("Id", "")),
        name=str(entry.get("Name", "")).removeprefix("/"),
        labels=dict(config.get("Labels") or {}),
        status=str(state.get("Status", "")),
        pid=int(state.get("Pid") or 0),
        exit_code=int(state.get("ExitCode") or 0),
        oom_killed=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
        env={name: value for name, _, value in pairs},
        image=_digest(str(entry.get("Image", ""))),
        ports=tuple(_ports(entry)),
        stop_timeout=int(config.get("StopTimeout") or 10),
        stop_signal=_signal(config.get("StopSignal")),
    )


def _signal(told: object) -> signal.Signals:
    """Read a signal's name (docker) or number (podman); SIGTERM when the image names none."""
    text = str(told or "").upper().removeprefix("SIG")
    try:
        return signal.Signals(int(text)) if text.isascii() and text.isdigit() else signal.Signals[f"SIG{text}"]
    except (KeyError, ValueError):
        return signal.SIGTERM


def _ports(entry: dict[str, Any]) -> list[tuple[str, int, int]]:
    table: dict[str, Any] = (entry.get("NetworkSettings") or {}).get("Ports") or {}
    return [
        (str(bound.get("HostIp") or "0.0.0.0"), int(bound["HostPort"]), int(inside.partition("/")[0]))  # noqa: S104 - read
        for inside, outside in table.items()
        for bound in outside or ()
        if bound.get("HostPort")
    ]
