"""The small process beside an engine: holds its slot, follows its log, stops it when it must, settles the record.

``python -m ttstack.run.supervisor RUN_FOLDER SOCKET_FD [adopt]``, started by ``ttstack.run.link.spawn``.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.errors import Exit, TtxError
from ttstack.host.errors import HostError
from ttstack.host.process import boot_id, myself
from ttstack.run.ending import Ending, how_it_ended, settle
from ttstack.run.errors import NOTHING_MADE
from ttstack.run.link import Orders
from ttstack.run.logscan import Follower
from ttstack.run.minding import BuildMinded
from ttstack.run.plan import read_plan
from ttstack.run.ready import Health
from ttstack.run.runtime import find_runtime
from ttstack.run.state import RunFolder, State
from ttstack.run.texts import BUILDING, failure_in, later_step
from ttstack.run.watch import Watch
from ttstack.slots.claim import new_claim
from ttstack.slots.take import adopt, sign

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ttstack.run.plan import Plan
    from ttstack.run.runtime import Engine, Runtime
    from ttstack.run.texts import Failure
    from ttstack.slots.take import Slot

_POLL_S = 0.03
_HOLD_S = 0.5  # between two looks at a container that did not end
_LOG_LAG_S = 10.0  # an engine in a container answers before the copy of its log says that it is ready
_LAST_WORDS_S = 2.0  # an engine that says it failed gets this long to end by itself and to say why


class Supervisor:
    """One run's engine, from its start to its end."""

    def __init__(self, folder: RunFolder, orders: Orders, plan: Plan, slot: Slot, cache: BuildMinded) -> None:
        self.folder = folder
        self.orders = orders
        self.plan = plan
        self.slot = slot
        self.cache = cache
        self.runtime: Runtime = find_runtime(plan.launch.runtime)
        self.terminated = False
        self.converting = False  # this boot has begun to write tensor files
        folder_of = Path(plan.launch.cache_dir)
        self.watch = Watch(plan.limits, folder_of, plan.launch.stop_grace_s, plan.expected if plan.building else 0)
        self.engine: Engine | None = None
        self.follower = Follower(folder.log)
        self.claim = new_claim(plan.run, plan.arm, myself(), cache=plan.launch.cache_key)
        self.state = State(
            run=plan.run,
            arm=plan.arm,
            since=self.claim.since,
            boot_id=boot_id(),
            simulated=plan.simulated,
            phase="booting",
            step="",
            supervisor=self.claim.process,
            engine=None,
            cards=plan.cards,
            host=plan.port.host,
            port=plan.port.outside,
            stop_grace_s=plan.launch.stop_grace_s,
            runtime=plan.launch.runtime,
        )

    @property
    def _keys(self) -> tuple[int, ...]:
        """What an engine that can hold descriptors holds as long as it lives: its cards and its cache."""
        return (*self.slot.fds, *self.cache.fds)

    def supervise(self) -> None:
        """Start the engine, watch it, stop it, give the cards back. The state says how that went."""
        self.slot.write(self.claim)
        self.folder.write(self.state)
        try:
            self.engine = self.runtime.start(self.plan.launch, self.folder, self.plan.extra_env, self._keys)
        except TtxError as error:
            self._over(Ending(error.reason, error.message), untouched=error.reason in NOTHING_MADE)
            return
        self._attend(self.engine)

    def take_over(self, earlier: State) -> None:
        """Attend an engine whose supervisor died. Raises RunError when it is gone by now: nothing is written then."""
        self.engine = self.runtime.adopt(earlier, self.folder)
        self.state = replace(earlier, supervisor=self.claim.process, attended=False)
        sign(self.slot, self.claim)
        self.cache.take_over(self.claim)
        self.folder.write(self.state)
        self._attend(self.engine)

    def hold(self) -> None:
        """Keep the cards of a container that did not end, until nothing is left of it. A process has them itself."""
        while self.state.phase == "dirty" and not self.slot.released:
            self.orders.poll(_HOLD_S)
            if self.terminated and self.engine is not None:
                self.terminated = False
                self.engine.ask_to_stop()
            if self._clear():
                self.cache.let_go()
                self.slot.release()
                last = self.folder.read()
                if last is None or last.phase == "dirty":
                    self._set(phase="stopped")

    def _attend(self, engine: Engine) -> None:
        ending = Ending("supervisor_failed", "the supervisor failed, see its log")
        try:
            self._set(engine=engine.leader, container=engine.container)
            ending = self._watch(engine)
        except TtxError as error:
            ending = Ending("supervisor_failed", error.message)
        finally:
            self._stop(engine, ending)

    def _set(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        self.folder.write(self.state)

    def _watch(self, engine: Engine) -> Ending:
        deadline = time.monotonic() + self.plan.boot_timeout_s
        health = Health(self.state.url)
        lag = _LOG_LAG_S if engine.container else 0.0
        answered: float | None = None
        while True:
            self.orders.poll(_POLL_S)
            ended = engine.ended()  # asked before the log is read, so that its last words are
            failure = self._read_log() or (None if ended else self._look_around())
            if failure is not None:
                return Ending(failure.reason, failure.text)
            booting = self.state.phase == "booting"
            if ended:
                return Ending("engine_died", f"the engine ended {'while it booted' if booting else 'while it served'}")
            if booting and answered is None and health.is_up():
                answered = time.monotonic()
            if booting and (self.state.step == "ready" or (answered and time.monotonic() >= answered + lag)):
                self._set(phase="ready", step="ready")
            elif booting and time.monotonic() > deadline:
                step = self.state.step or "none"
                text = f"the engine was not ready after {self.plan.boot_timeout_s} s; last step of the boot: {step}"
                return Ending("boot_timeout", text)
            if self.orders.left and self.state.attended:
                self._set(attended=False)
            asked = self._asked_to_end()
            if asked is not None:
                return asked

    def _look_around(self) -> Failure | None:
        booting = self.state.phase == "booting"
        return self.watch.look(
            building=self.plan.building and booting,
            converting=self.converting and self.state.step == "cache",
        )

    def _asked_to_end(self) -> Ending | None:
        if self.orders.stop:
            return Ending("stopped", "stopped as asked")
        if self.terminated:
            return Ending("stopped", "stopped by `ttx down` or the system")
        if self.orders.gone and not self.orders.left:
            return Ending("owner_died", "the ttx that ran this ended without stopping it")
        return None

    def _read_log(self) -> Failure | None:
        step = self.state.step
        found = None
        for line in self.follower.lines():
            if self.state.phase == "booting":
                step = later_step(step, line)
                self.converting = self.converting or BUILDING in line
            if found is None or found.reason == "engine_failed":  # the lines after that one say why
                found = failure_in(line, serving=self.state.phase == "ready") or found
        if step != self.state.step:
            self._set(step=step)
        return found

    def _stop(self, engine: Engine, ending: Ending) -> None:
        if ending.reason == "engine_failed":
            self._wait(engine, _LAST_WORDS_S)
            with suppress(OSError, TtxError):
                why = self._read_log()
                ending = Ending(why.reason, why.text) if why and why.reason != "engine_failed" else ending
        # The order matters: whatever cannot be written must not keep the engine from being stopped.
        if not engine.clear():
            grace = self.plan.launch.stop_grace_s + engine.margin_s
            engine.ask_to_stop()
            with suppress(HostError):
                self._set(phase="stopping", reason=ending.reason, text=ending.text)
            if not engine.ended():
                self._wait(engine, grace)
                waited = f"it did not stop within {self.plan.launch.stop_grace_s} s and was killed"
                ending = self._if_killed(ending, engine, waited)
            if engine.ended() and not engine.clear() and not engine.container:
                engine.ask_to_stop()  # its first process is gone, others are left: in a container there are none
                self._wait(engine, grace)
        if ending.reason == "stopped":  # somebody else killed it meanwhile, as `ttx down --kill` does
            ending = self._if_killed(ending, engine, "it was killed")
        self._over(ending)

    def _if_killed(self, ending: Ending, engine: Engine, how: str) -> Ending:
        """Say that docker killed an engine that outlived its grace: its cards were not torn down."""
        if not engine.container or engine.exit_code() != -signal.SIGKILL:
            return ending
        reason = "killed" if ending.reason == "stopped" else ending.reason
        return Ending(reason, f"{ending.text}; {how}: its cards may need a reset")

    def _wait(self, engine: Engine, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not engine.clear():
            self.orders.poll(_POLL_S)

    def _clear(self) -> bool:
        """Whether nothing of the engine is left; what cannot be learned is not nothing."""
        if self.engine is not None:
            return self.engine.clear()
        try:
            return not self.runtime.find(self.plan.run, None)
        except TtxError:
            return False

    def _over(self, ending: Ending, *, untouched: bool = False) -> None:
        engine = self.engine
        code = None if engine is None else engine.exit_code()
        if untouched or self._clear():
            if engine is not None and ending.reason == "engine_died":
                how = [*([] if code is None else [how_it_ended(code)]), *([engine.note()] if engine.note() else [])]
                ending = replace(ending, text=": ".join([ending.text, *how]))
            self.cache.settle(ending.text, started=engine is not None)
            self.cache.let_go()
            self.slot.release()
            self._set(phase="stopped", reason=ending.reason, text=ending.text, exit_code=code)
            return
        self.cache.settle(ending.text, started=True)
        # A process keeps its copies of the locks, and we keep those of a container (see ``hold``).
        self.slot.write(replace(self.claim, state="dirty"))
        if self.plan.launch.runtime == "process":
            self.cache.let_go()
            self.slot.let_go()
        grace = self.plan.launch.stop_grace_s
        text = f"the engine did not stop within {grace} s of being asked to ({ending.text})"
        self._set(phase="dirty", reason="stop_failed", text=text, exit_code=code)


def main(argv: Sequence[str]) -> int:
    """Supervise the run of a folder; see the module."""
    folder, orders = RunFolder(Path(argv[0])), Orders(socket.socket(fileno=int(argv[1])))
    terminated: list[int] = []
    here: list[Supervisor] = []

    def terminate(number: int, _frame: FrameType | None) -> None:
        terminated.append(number)
        for supervisor in here:
            supervisor.terminated = True

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while orders.fds is None and not (orders.gone or orders.done or terminated):
        orders.poll(_POLL_S)
    state = None
    adopting = argv[2:] == ["adopt"]
    if orders.fds is None and (terminated or adopting):
        return Exit.FAILED  # who started us sees that we are gone; the record is not ours to close
    if orders.fds is not None:
        plan = read_plan(folder)
        *keys, lock = orders.fds or (None,)
        slot = adopt(plan.cards, [key for key in keys if key is not None], plan.locks, plan.legacy)
        supervisor = Supervisor(folder, orders, plan, slot, BuildMinded(plan, lock))
        here.append(supervisor)
        supervisor.terminated = bool(terminated)
        earlier = folder.read() if adopting else None
        if earlier is None:
            supervisor.supervise()
        else:
            orders.left = True
            supervisor.take_over(earlier)
        state = supervisor.state
    settle(folder, orders, state)
    for supervisor in here:
        supervisor.hold()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
