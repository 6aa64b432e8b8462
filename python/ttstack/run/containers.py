"""Engines in containers of docker or podman."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.errors import TtxError
from ttstack.host import process
from ttstack.render.docker import docker_argv
from ttstack.render.launch import Mount
from ttstack.run.children import start_watcher
from ttstack.run.client import START_S, Client
from ttstack.run.errors import RunError
from ttstack.run.follow import LogCopy
from ttstack.run.hearing import hears, wait_until_it_hears
from ttstack.run.mounts import make_mounts, owner_of
from ttstack.run.runtime import ContainerId, Inside, check_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ttstack.host.types import ProcessId
    from ttstack.render.launch import Launch
    from ttstack.run.client import Seen
    from ttstack.run.runtime import Part
    from ttstack.run.state import RunFolder, State

_AGAIN_S = 1.0  # between two questions to a daemon that did not answer, or did not do as asked
_AWAY_S = 60.0  # an engine whose process is gone is over after this, though no daemon says so
_MARGIN_S = 10.0
_BY_SIGNAL = 128  # docker's exit code for a first process that a signal ended is this and the signal's number


@dataclass(frozen=True, slots=True)
class End:
    """How a container ended. ``code`` None: nobody knows any more."""

    code: int | None
    note: str = ""


class ContainerEngine:
    """An engine in a container, by the container's id. Three children watch it: its log, its end, and its stop."""

    def __init__(self, client: Client, seen: Seen, log: LogCopy) -> None:
        self._client = client
        self._container = seen.id
        self._leader = process.identify(seen.pid) if seen.pid else None
        self._grace_s = seen.stop_timeout
        self._number = seen.stop_signal
        self._log = log
        self._waiter = self._watch()
        self._stopper: subprocess.Popen[bytes] | None = None
        self._asked: float | None = None  # when it was asked to stop
        self._left_s: int | None = None  # of the grace, once it could hear that
        self._end: End | None = None
        self._away_since: float | None = None
        self._removed = False
        self._next_look = self._next_stop = self._next_removal = 0.0

    @property
    def leader(self) -> ProcessId | None:
        """Its first process, as this host sees it."""
        return self._leader

    @property
    def container(self) -> str:
        """Its id."""
        return self._container

    @property
    def margin_s(self) -> float:
        """See ``Engine``: docker kills after the grace, and the rest of the log comes after that."""
        return _MARGIN_S

    def ended(self) -> bool:
        """See ``Engine``. The log is complete by then."""
        self._end = self._end or self._look()
        if self._end is not None:
            return self._log.finished()
        self._log.keep_up()
        if self._asked is not None and (self._stopper is None or self._stopper.poll() not in {None, 0}):
            self._send_stop()  # it could not hear it before, or the daemon did not
        return False

    def exit_code(self) -> int | None:
        """See ``Engine``."""
        return None if self._end is None else self._end.code

    def note(self) -> str:
        """See ``Engine``."""
        return "" if self._end is None else self._end.note

    def ask_to_stop(self) -> None:
        """See ``Engine``: docker asks, as soon as the engine can hear it, and kills when the grace is over."""
        self._asked, self._left_s = time.monotonic(), None
        self._send_stop()

    def clear(self) -> bool:
        """See ``Engine``: a container that is over is removed."""
        if self._removed or not self.ended():
            return self._removed
        if time.monotonic() >= self._next_removal:
            self._next_removal = time.monotonic() + _AGAIN_S
            try:
                self._removed = self._client.remove(self._container)
            except TtxError:
                self._removed = False  # the daemon is away: asked again
            if self._removed:
                self._reap()
        return self._removed

    def _watch(self) -> subprocess.Popen[bytes]:
        return start_watcher([self._client.program, "wait", self._container], subprocess.DEVNULL)

    def _send_stop(self) -> None:
        now = time.monotonic()
        if self._asked is None or now < self._next_stop:
            return
        waited = now - self._asked
        if self._left_s is None:
            if waited < self._grace_s and not hears(self._leader, self._number):
                return
            self._left_s = math.ceil(max(0.0, self._grace_s - waited))
        self._next_stop = now + _AGAIN_S
        self._stopper = self._spawn("stop", "-t", str(self._left_s), self._container)

    def _spawn(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        argv = [self._client.program, *words]
        return subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, process_group=0)

    def _reap(self) -> None:
        for child in (self._waiter, self._stopper):
            if child is not None:
                if child.poll() is None:
                    child.kill()  # it only waits for what has come
                child.wait()

    def _look(self) -> End | None:
        """Ask for the end, once the child that waits for it has come back."""
        now = time.monotonic()
        if self._waiter.poll() is None or now < self._next_look:
            return None
        self._next_look = now + _AGAIN_S
        try:
            seen = self._client.inspect(self._container)
        except TtxError:
            return self._while_away(now)
        self._away_since = None
        if seen is None:
            self._removed = True
            return End(None, "its container was removed by somebody else")
        if seen.over:
            return end_of(seen)
        self._waiter = self._watch()
        return None

    def _while_away(self, now: float) -> End | None:
        self._log.doubt()
        self._away_since = now if self._away_since is None else self._away_since
        if now < self._away_since + _AWAY_S or self._leader is None or process.alive(self._leader):
            return None
        return End(None, f"its process is gone, and {self._client.program} does not answer")


def end_of(seen: Seen) -> End:
    """Say how a container that is over ended; a signal's number is negative, as in ``subprocess``."""
    code = seen.exit_code
    if _BY_SIGNAL < code <= _BY_SIGNAL + signal.NSIG:
        code = _BY_SIGNAL - code
    if seen.oom_killed:
        return End(code, "the kernel killed it for want of memory (OOMKilled)")
    return End(code, seen.error)


class ContainerRuntime:
    """docker, or podman, which takes the same commands."""

    def __init__(self, program: str) -> None:
        self._client = Client(program)

    def check(self, image: str) -> None:
        """See ``Runtime``."""
        self._client.check()
        self._client.image(image)

    def owner(self, image: str) -> int:
        """See ``Runtime``: the image's user."""
        return owner_of(self._client.image(image).user)

    def prepare(self, launch: Launch, cache: Path) -> None:
        """See ``Runtime``: secrets are set, the name is free, and whatever is to be mounted is there."""
        check_secrets(launch, os.environ)
        seen = self._client.inspect(launch.name)
        if seen is not None:
            raise self._client.name_taken(launch.name, seen)
        make_mounts(launch, cache, self.owner(launch.image))

    def start(
        self, launch: Launch, folder: RunFolder, extra_env: Mapping[str, str], keep: Sequence[int]
    ) -> ContainerEngine:
        """See ``Runtime``. A container cannot hold ``keep``; that it exists is what keeps others off its cards."""
        del keep
        check_secrets(launch, os.environ)
        launch = with_simulated_nodes(replace(launch, env={**extra_env, **launch.env}))
        program, *words = docker_argv(launch, "up", self._client.program)
        del program
        answer = self._client.call(*words, seconds=START_S)
        if answer.code:
            error = self._client.start_refusal(answer, launch)
            self._remove_unstarted(folder.run)
            raise error
        seen = self._client.inspect(answer.out.split()[-1])
        if seen is None:
            raise RunError("the container was removed as soon as it was made", reason="engine_not_started")
        return ContainerEngine(self._client, seen, self._copy(seen, folder, fresh=True))

    def adopt(self, state: State, folder: RunFolder) -> ContainerEngine:
        """See ``Runtime``."""
        ids = self._client.of_run(state.run)
        seen = self._client.inspect(ids[0]) if len(ids) == 1 else None
        if seen is None:
            raise RunError(f"run {state.run} has {len(ids)} containers, not one", reason="engine_lost")
        return ContainerEngine(self._client, seen, self._copy(seen, folder, fresh=False))

    def find(self, run: str, leader: ProcessId | None) -> tuple[Part, ...]:
        """See ``Runtime``. By the run's label, whatever state a container is in: it is left until it is removed."""
        del leader
        return tuple(ContainerId(each) for each in self._client.of_run(run))

    def stop(self, found: Sequence[Part], number: signal.Signals) -> None:
        """See ``Runtime``: docker asks and waits out the grace; with SIGKILL it kills."""
        for part in _containers(found):
            seen = self._client.inspect(part.id)
            if seen is not None and not seen.over:
                if number == signal.SIGKILL:
                    self._client.kill(part.id)
                else:
                    leader = process.identify(seen.pid) if seen.pid else None
                    self._client.stop(part.id, wait_until_it_hears(leader, seen.stop_signal, seen.stop_timeout))

    def clear(self, found: Sequence[Part]) -> None:
        """See ``Runtime``. Never by force: what is not over stays, and ``find`` finds it."""
        for part in _containers(found):
            self._client.remove(part.id)

    def processes(self, state: State) -> tuple[ProcessId, ...]:
        """See ``Runtime``."""
        return process.family(state.engine) if state.engine is not None else ()

    def look_inside(self, state: State, image: str) -> Inside | None:
        """See ``Runtime``."""
        seen = self._client.inspect(state.container)
        if seen is None:
            return None
        wanted = self._client.image(image).id
        return Inside(seen.env, seen.image, wanted, seen.ports, running=not seen.over)

    def _copy(self, seen: Seen, folder: RunFolder, *, fresh: bool) -> LogCopy:
        return LogCopy([self._client.program, "logs", "--follow", seen.id], folder.log, fresh=fresh)

    def _remove_unstarted(self, run: str) -> None:
        """``docker run`` leaves the container that it made when it could not start it."""
        for each in self._client.of_run(run):
            seen = self._client.inspect(each)
            if seen is not None and seen.over:
                self._client.remove(each)


def _containers(found: Sequence[Part]) -> list[ContainerId]:
    return [part for part in found if isinstance(part, ContainerId)]


def with_simulated_nodes(launch: Launch) -> Launch:
    """Mount the nodes that are plain files, as the simulated host's are: docker takes no such device."""
    plain = [device for device in launch.devices if Path(device.source).is_file()]
    return replace(
        launch,
        devices=tuple(device for device in launch.devices if device not in plain),
        mounts=(*launch.mounts, *(Mount(device.source, device.target, read_only=False) for device in plain)),
    )
