"""Which running containers have which cards, as docker and podman tell.

A container has a card by a device, a bind mount or its being privileged, whether or not a process in it has the node
open now, and by the label that Tenstorrent's own tools claim cards with. An engine that is not installed has no
containers, nor does any run of one that does not answer and of which no process is here (see ``engines``). Any other
that does not answer may have some: that is a trouble, and never "none".
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttstack.host.container_cards import claims
from ttstack.host.engines import living, on_path
from ttstack.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ttstack.host.types import Card, Roots

RUN_LABEL = "ttstack.run"
"""Our own label: which run a container belongs to."""

DEADLINE_S = 10.0  # for each call: a daemon that hangs must not hang us
DOCKER_SOCKET = Path("/var/run/docker.sock")
_TRIES = 3
# The states in which a container has its devices, or is about to get them back, by each engine's names. Docker lists
# those alone; podman lists all, as an older one refuses to be asked for a state that it does not know (4.3: stopping).
_STATES = {
    "docker": ("running", "paused", "restarting", "removing"),
    "podman": ("running", "paused", "stopping", "removing"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said."""

    code: int
    out: str
    err: str


Runner = Callable[[Sequence[str], float], Answer]
"""Runs a command within so many seconds. Raises FileNotFoundError and TimeoutError."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that has cards."""

    engine: str  # docker or podman
    id: str  # 64 hex digits
    name: str
    cards: frozenset[int] | None  # numbers of nodes; None: every card
    why: str  # what gives it the cards, e.g. "privileged" or "device /dev/tenstorrent/0"
    run: str = ""  # the run that it belongs to, by its label; "": none of ttx's

    def has(self, card: Card) -> bool:
        """Whether it has this card."""
        return self.cards is None or card.number in self.cards

    def __str__(self) -> str:
        run = f"run {self.run}, " if self.run else ""
        return f"container {self.name or self.id[:12]} ({self.engine} {self.id[:12]}, {run}{self.why})"


@dataclass(frozen=True, slots=True)
class Containers:
    """What the engines tell. Without troubles, no other container has a card."""

    found: tuple[Container, ...] = ()
    absent: tuple[str, ...] = ()  # one sentence for each engine that is not here
    troubles: tuple[str, ...] = ()  # one sentence for each engine that could not be asked


@dataclass(frozen=True, slots=True)
class Described:
    """What the engines say of their containers, each with how it was asked. Without troubles there are no others."""

    entries: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = ()  # e.g. ("docker", "--host", "unix://..."), entry
    absent: tuple[str, ...] = ()
    silent: tuple[tuple[str, str], ...] = ()  # engines that did not tell, each with why

    @property
    def troubles(self) -> tuple[str, ...]:
        """Say why some did not tell, a sentence each."""
        return tuple(why for _, why in self.silent)


class _TroubleError(Exception):
    """An engine did not tell what it was asked; the text is the sentence."""


def run_command(argv: Sequence[str], seconds: float) -> Answer:
    """Run a command to its end. Raises FileNotFoundError when there is no such program, TimeoutError."""
    if not on_path(argv[0]):  # a process would tell, too, a millisecond later
        raise FileNotFoundError(argv[0])
    try:
        # A group of its own: an interrupt at the terminal is ours to handle, and no answer of the engine's.
        done = subprocess.run(
            list(argv), capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False, process_group=0
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    return Answer(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def any_engine() -> bool:
    """Say whether any engine may have to be asked, which takes a while. Raises nothing."""
    return DOCKER_SOCKET.exists() or any(map(on_path, _STATES))


def look(
    cards: Sequence[Card],
    roots: Roots,
    *,
    run: Runner = run_command,
    environ: Mapping[str, str] = os.environ,
    socket: Path | None = None,
) -> Containers:
    """Ask every engine of this host for its running containers, and find those that have one of the cards.

    Podman tells a user's own containers only; what those of others have open, the processes tell. Raises nothing.
    """
    if not cards:
        return Containers()
    told = describe(_STATES, run=run, environ=environ, socket=socket)
    found = {
        container.id: container
        for command, entry in told.entries
        if (container := _container(command[0], entry, cards, roots)) is not None
    }
    absent, troubles = list(told.absent), []
    for engine, why in told.silent:
        # After it was asked: a daemon that starts later than this begins its containers later, too.
        left = living(engine, roots.proc)
        if left == "":
            absent.append(f"nothing of {engine} runs here")
        else:
            troubles.append(f"{why}; {left} is there, so containers may be, too" if left else why)
    return Containers(tuple(found.values()), tuple(dict.fromkeys(absent)), tuple(troubles))


def describe(
    states: Mapping[str, Sequence[str]],
    *,
    run: Runner = run_command,
    environ: Mapping[str, str] = os.environ,
    socket: Path | None = None,
) -> Described:
    """Ask every engine of this host to describe its containers that are in one of ``states``, by engine.

    Podman tells a user's own containers only. Raises nothing.
    """
    socket = socket or DOCKER_SOCKET
    entries: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    absent: list[str] = []
    silent: list[tuple[str, str]] = []
    for engine, command in _engines(environ, socket):
        try:
            entries += [(tuple(command), entry) for entry in _inspect(engine, command, run, states[engine])]
        except FileNotFoundError:
            if engine == "docker" and socket.exists():
                silent.append((engine, f"docker's socket {socket} is here, but no docker program on PATH"))
            else:
                absent.append(f"no {engine} here")
        except _TroubleError as trouble:
            silent.append((engine, str(trouble)))
    return Described(tuple(entries), tuple(absent), tuple(dict.fromkeys(silent)))


def _engines(environ: Mapping[str, str], socket: Path) -> Iterator[tuple[str, list[str]]]:
    """Say how to ask. DOCKER_HOST or a context may lead to another host, so this host's own socket is asked by name."""
    named = environ.get("DOCKER_HOST", "")
    sockets = [f"unix://{socket}"] if socket.exists() else []
    if named.startswith("unix://") and os.path.realpath(named.removeprefix("unix://")) != os.path.realpath(socket):
        sockets.append(named)
    for address in sockets:
        yield "docker", ["docker", "--host", address]
    if not sockets:
        yield "docker", ["docker"]
    yield "podman", ["podman"]


def _inspect(engine: str, command: list[str], run: Runner, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Describe the containers that are in one of the wanted states. Raises FileNotFoundError and _TroubleError."""
    asked = wanted if engine == "docker" else ()
    states = [word for state in asked for word in ("--filter", f"status={state}")]
    for _ in range(_TRIES):
        listed = _call(engine, [*command, "ps", "--all", "--no-trunc", "--quiet", *states], run)
        if listed.code:
            raise _TroubleError(_why(engine, "ps", listed))
        ids = listed.out.split()
        if not ids:
            return []
        told = _call(engine, [*command, "container", "inspect", *ids], run)
        if told.code == 0:
            return [entry for entry in _parse(engine, told.out) if _is_wanted(engine, entry, wanted)]
        if "no such" not in told.err.lower():
            raise _TroubleError(_why(engine, "inspect", told))
        # One ended meanwhile, and another may have begun: look again.
    raise _TroubleError(f"{engine}'s containers come and go too fast to be looked at")


def _is_wanted(engine: str, entry: dict[str, Any], wanted: Sequence[str]) -> bool:
    """Whether a container is in a wanted state; one that does not tell its state is."""
    state = str((entry.get("State") or {}).get("Status") or "").lower()
    return engine == "docker" or not state or state in wanted


def _call(engine: str, argv: list[str], run: Runner) -> Answer:
    try:
        return run(argv, DEADLINE_S)
    except TimeoutError:
        raise _TroubleError(f"{engine} did not answer within {DEADLINE_S:g} s") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _TroubleError(f"{engine} cannot be run: {error.strerror}") from None


def _why(engine: str, what: str, answer: Answer) -> str:
    text = answer.err.lower()
    if "permission denied" in text:
        return f"{engine} may not be asked by this user (join its group, or run ttx as root)"
    if "cannot connect" in text or "connection refused" in text:
        return f"{engine} is installed, but its daemon does not answer (start it: systemctl start {engine})"
    line = next((line.strip() for line in answer.err.splitlines() if line.strip()), "it said nothing")
    return f"{engine} {what} failed with exit {answer.code}: {line}"


def _parse(engine: str, text: str) -> list[dict[str, Any]]:
    try:
        value: object = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list) or not all(isinstance(entry, dict) and entry.get("Id") for entry in value):
        raise _TroubleError(f"{engine} inspect printed something else than a list of containers")
    return value


def _container(engine: str, entry: dict[str, Any], cards: Sequence[Card], roots: Roots) -> Container | None:
    """Say which cards a container has; None when it has none of ours."""
    given = list(claims(entry, cards, roots))
    if not given:
        return None
    every = any(numbers is None for numbers, _ in given)
    numbers = frozenset(number for numbers, _ in given if numbers is not None for number in numbers)
    why = ", ".join(dict.fromkeys(why for numbers, why in given if numbers is None or not every))
    name = str(entry.get("Name") or "").removeprefix("/")
    labels = (entry.get("Config") or {}).get("Labels") or {}
    run = printable(str(labels.get(RUN_LABEL) or ""))
    return Container(engine, str(entry["Id"]), name, None if every else numbers, why, run)
