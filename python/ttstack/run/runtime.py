"""What runs engines. One protocol, so that containers can take the place of processes."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Protocol

from ttstack.errors import RefusedError
from ttstack.host import process
from ttstack.run.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.host.types import ProcessId
    from ttstack.render.launch import Launch
    from ttstack.run.state import RunFolder

RUN_VARIABLE = "TTX_RUN"
"""In the environment of every engine process: the run that it belongs to, as a label is for a container."""

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE")


class Engine(Protocol):
    """One engine that was started here, by its supervisor."""

    @property
    def leader(self) -> ProcessId | None:
        """Its first process, as this host sees it."""

    def exit_code(self) -> int | None:
        """Return how its first process ended (negative: by that signal); None while it runs."""

    def ask_to_stop(self) -> None:
        """Ask all of it to stop gracefully."""


class Runtime(Protocol):
    """Starts engines, and finds those that an earlier ttx started."""

    def start(self, launch: Launch, folder: RunFolder, extra_env: Mapping[str, str], keep: Sequence[int]) -> Engine:
        """Start an engine whose output goes to the run's log and which holds the descriptors ``keep`` as it lives.

        Raises RunError when it cannot be started.
        """

    def find(self, run: str, leader: ProcessId | None) -> tuple[ProcessId, ...]:
        """Name all live processes of a run's engine, its first one first."""

    def stop(self, found: Sequence[ProcessId], number: signal.Signals) -> None:
        """Signal an engine that was found. Raises HostError when that is not allowed."""


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

    def exit_code(self) -> int | None:
        """Return how its first process ended; None while it runs."""
        return self._popen.poll()

    def ask_to_stop(self) -> None:
        """Ask the first process alone, which tears the others down; when it is gone, ask those that are left."""
        if self.exit_code() is None:
            self._popen.send_signal(signal.SIGTERM)
        else:
            self._runtime.stop(self._runtime.find(self._run, self._leader), signal.SIGTERM)


class ProcessRuntime:
    """Engines as plain processes: for the simulated engine, and for machines where the engine is installed."""

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

    def find(self, run: str, leader: ProcessId | None) -> tuple[ProcessId, ...]:
        """See ``Runtime``. By session and descent, and by the mark in the environment for whoever left both."""
        found = dict.fromkeys(process.family(leader) if leader is not None else ())
        for pid in process.pids():
            env = process.environ(pid)
            name = process.identify(pid) if env is not None and env.get(RUN_VARIABLE) == run else None
            if name is not None and process.alive(name):
                found[name] = None
        return tuple(found)

    def stop(self, found: Sequence[ProcessId], number: signal.Signals) -> None:
        """See ``Runtime``."""
        for name in found:
            process.send(name, number)


def engine_env(launch: Launch, run: str, extra: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Make an engine's whole environment: little of ours, the secrets by name, the launch's, and the run's mark.

    What else stands in ours is kept out: a left-over TT_METAL_HOME would make a wheel compile another tree's kernels.
    Raises RunError for a secret that is not set.
    """
    missing = [name for name in launch.secrets if name not in ours]
    if missing:
        raise RunError(f"the secret {missing[0]} is not set in ttx's environment", reason="secret_missing")
    passed = {name: ours[name] for name in (*_PASSED_ON, *launch.secrets) if name in ours}
    return {**passed, **extra, **launch.env, RUN_VARIABLE: run}


def find_runtime(name: str) -> Runtime:
    """Return the runtime of an arm. Raises RefusedError for those that this version cannot run."""
    if name == "process":
        return ProcessRuntime()
    raise RefusedError(
        f"this ttx does not run {name} containers yet; the next version does",
        hint="`ttx unit ARM` prints a systemd unit and `ttx arm render ARM --as docker` the command",
        reason="runtime_unsupported",
    )
