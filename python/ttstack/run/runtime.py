"""What runs engines. One protocol, so that containers can take the place of processes."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ttstack.host import process
from ttstack.host.types import ProcessId
from ttstack.run.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ttstack.render.launch import Launch
    from ttstack.run.state import RunFolder, State

RUN_VARIABLE = "TTX_RUN"
"""In the environment of every engine process: the run that it belongs to, as a label is for a container."""

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE")


@dataclass(frozen=True, slots=True)
class ContainerId:
    """A container: never its name, which a later one may have."""

    id: str


Part: TypeAlias = ProcessId | ContainerId
"""What an engine is made of, as seen from outside."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What the engine of containers knows of a container of ours."""

    env: Mapping[str, str]
    image: str  # digest of the image that it was made of
    wanted: str  # digest of the image that the arm's reference means now
    ports: tuple[tuple[str, int, int], ...]  # that it publishes: host address, port outside, port inside
    running: bool


class Engine(Protocol):
    """One engine as its supervisor has it."""

    @property
    def leader(self) -> ProcessId | None:
        """Its first process, as this host sees it; None when it cannot be seen."""

    @property
    def container(self) -> str:
        """The id of its container; "" for a process."""

    @property
    def margin_s(self) -> float:
        """What its end may take beyond the grace."""

    def ended(self) -> bool:
        """Whether its first process is over and its log is complete. To be asked often: it keeps the log going."""

    def exit_code(self) -> int | None:
        """Return how its first process ended (negative: by that signal); None while it runs or when nobody knows."""

    def note(self) -> str:
        """Say more about its end; "" when there is no more to say."""

    def ask_to_stop(self) -> None:
        """Ask all of it to stop gracefully."""

    def clear(self) -> bool:
        """Whether it is over and nothing of it is left; what is left of one that is over is cleared away here."""


class Runtime(Protocol):
    """Starts engines, and finds those that an earlier ttx started."""

    def check(self, image: str) -> None:
        """Raise RunRefusedError when no engine of this image can run here."""

    def owner(self, image: str) -> int | None:
        """Say whose the caches must be, as a user's number; None: the user's who runs ttx."""

    def prepare(self, launch: Launch, cache: Path) -> None:
        """Make the folders that a launch needs under ``cache``; RunRefusedError when it could not start."""

    def start(self, launch: Launch, folder: RunFolder, extra_env: Mapping[str, str], keep: Sequence[int]) -> Engine:
        """Start an engine whose output goes to the run's log and which holds the descriptors ``keep`` as it lives.

        Raises RunError or RunRefusedError when it cannot be started.
        """

    def adopt(self, state: State, folder: RunFolder) -> Engine:
        """Take an engine over that an earlier supervisor started. Raises RunError when there is not exactly one."""

    def find(self, run: str, leader: ProcessId | None) -> tuple[Part, ...]:
        """Name all that is left of a run's engine, the first process first. Raises HostError or RunRefusedError."""

    def stop(self, found: Sequence[Part], number: signal.Signals) -> None:
        """Signal an engine that was found. Raises HostError when that is not allowed."""

    def clear(self, found: Sequence[Part]) -> None:
        """Clear away what is left of parts that are over."""

    def processes(self, state: State) -> tuple[ProcessId, ...]:
        """Name the live processes of a run's engine, as far as this host sees them."""

    def look_inside(self, state: State, image: str) -> Inside | None:
        """Ask what runs in a run's container; None for a process, of which /proc tells. Raises as ``find``."""


class ProcessEngine:
    """An engine that is a process of this host, in a session of its own."""

    def __init__(self, popen: subprocess.Popen[bytes], run: str, runtime: ProcessRuntime) -> None:
        self._popen = popen
        self._run = run
        self._runtime = runtime
        self._leader = process.identify(popen.pid)

    @property
    def leader(self) -> ProcessId | None:
        """Its first process."""
        return self._leader

    @property
    def container(self) -> str:
        """None."""
        return ""

    @property
    def margin_s(self) -> float:
        """None: it is never killed, so its end takes what it takes."""
        return 0.0

    def ended(self) -> bool:
        """See ``Engine``."""
        return self._popen.poll() is not None

    def exit_code(self) -> int | None:
        """See ``Engine``."""
        return self._popen.poll()

    def note(self) -> str:
        """Nothing more is known."""
        return ""

    def ask_to_stop(self) -> None:
        """Ask the first process alone, which tears the others down; when it is gone, ask those that are left."""
        if not self.ended():
            self._popen.send_signal(signal.SIGTERM)
        else:
            self._runtime.stop(self._runtime.find(self._run, self._leader), signal.SIGTERM)

    def clear(self) -> bool:
        """See ``Engine``."""
        return self.ended() and not self._runtime.find(self._run, self._leader)


class AdoptedProcess:
    """A process that another supervisor started: how it ends is told to nobody any more."""

    container = ""
    margin_s = 0.0

    def __init__(self, state: State, runtime: ProcessRuntime) -> None:
        self._run = state.run
        self.leader = state.engine
        self._runtime = runtime

    def ended(self) -> bool:
        """See ``Engine``."""
        return self.leader is None or not process.alive(self.leader)

    def exit_code(self) -> int | None:
        """Nobody knows."""
        return None

    def note(self) -> str:
        """Say why there is no exit code."""
        return "it was adopted, so its exit code is not known" if self.ended() else ""

    def ask_to_stop(self) -> None:
        """Ask as ``ProcessEngine`` does."""
        found = self._runtime.find(self._run, self.leader)
        self._runtime.stop(found if self.ended() else found[:1], signal.SIGTERM)

    def clear(self) -> bool:
        """See ``Engine``."""
        return self.ended() and not self._runtime.find(self._run, self.leader)


class ProcessRuntime:
    """Engines as plain processes: for the simulated engine, and for machines where the engine is installed."""

    def check(self, image: str) -> None:
        """Nothing: what is missing is seen when it is started."""

    def owner(self, image: str) -> None:
        """See ``Runtime``: the engine is ours."""
        del image

    def prepare(self, launch: Launch, cache: Path) -> None:
        """See ``Runtime``: the engine makes its folders itself."""
        del cache
        check_secrets(launch, os.environ)

    def start(
        self, launch: Launch, folder: RunFolder, extra_env: Mapping[str, str], keep: Sequence[int]
    ) -> ProcessEngine:
        """See ``Runtime``."""
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            popen = subprocess.Popen(
                launch.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=engine_env(launch, folder.run, extra_env, os.environ),
                cwd=folder.path,
                pass_fds=tuple(keep),
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(
                f"cannot start {launch.argv[0]!r}: {error.strerror}",
                hint="with the runtime 'process' the engine must be installed on this host and be on PATH",
                reason="engine_not_started",
            ) from error
        finally:
            os.close(log)
        return ProcessEngine(popen, folder.run, self)

    def adopt(self, state: State, folder: RunFolder) -> AdoptedProcess:
        """See ``Runtime``."""
        del folder  # the engine writes its log itself
        if not self.find(state.run, state.engine):
            raise RunError(f"the engine of run {state.run} is gone", reason="engine_lost")
        return AdoptedProcess(state, self)

    def find(self, run: str, leader: ProcessId | None) -> tuple[ProcessId, ...]:
        """See ``Runtime``. By session and descent, and by the mark in the environment for whoever left both."""
        found = dict.fromkeys(process.family(leader) if leader is not None else ())
        for pid in process.pids():
            env = process.environ(pid)
            name = process.identify(pid) if env is not None and env.get(RUN_VARIABLE) == run else None
            if name is not None and process.alive(name):
                found[name] = None
        return tuple(found)

    def stop(self, found: Sequence[Part], number: signal.Signals) -> None:
        """See ``Runtime``."""
        for part in found:
            if isinstance(part, ProcessId):
                process.send(part, number)

    def clear(self, found: Sequence[Part]) -> None:
        """Nothing is left of a process that is over."""

    def processes(self, state: State) -> tuple[ProcessId, ...]:
        """See ``Runtime``."""
        return self.find(state.run, state.engine)

    def look_inside(self, state: State, image: str) -> None:
        """See ``Runtime``."""
        del state, image


def engine_env(launch: Launch, run: str, extra: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Make an engine's whole environment: little of ours, the secrets by name, the launch's, and the run's mark.

    What else stands in ours is kept out: a left-over TT_METAL_HOME would make a wheel compile another tree's kernels.
    Raises RunError for a secret that is not set.
    """
    check_secrets(launch, ours)
    passed = {name: ours[name] for name in (*_PASSED_ON, *launch.secrets) if name in ours}
    return {**passed, **extra, **launch.env, RUN_VARIABLE: run}


def check_secrets(launch: Launch, ours: Mapping[str, str]) -> None:
    """Raise RunError for a secret that is not set: docker would leave it out without a word."""
    missing = [name for name in launch.secrets if name not in ours]
    if missing:
        raise RunError(f"the secret {missing[0]} is not set in ttx's environment", reason="secret_missing")


def find_runtime(name: str) -> Runtime:
    """Return the runtime of an arm: ``process``, ``docker`` or ``podman``."""
    if name == "process":
        return ProcessRuntime()
    from ttstack.run.containers import ContainerRuntime  # noqa: PLC0415 - it is written against this module

    return ContainerRuntime(name)
