"""The small process beside an engine: holds its slot, follows its log, stops it when it must, settles the record.

``python -m ttstack.run.supervisor RUN_FOLDER SOCKET_FD``, started by ``ttstack.run.link.spawn``.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.errors import Exit, TtxError
from ttstack.host.errors import HostError
from ttstack.host.process import boot_id, myself
from ttstack.run.link import Orders
from ttstack.run.plan import read_plan
from ttstack.run.ready import Health
from ttstack.run.runtime import find_runtime
from ttstack.run.state import RunFolder, State
from ttstack.run.texts import Follower, failure_in, later_step
from ttstack.slots.claim import new_claim
from ttstack.slots.take import adopt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ttstack.records.types import Outcome
    from ttstack.run.plan import Plan
    from ttstack.run.runtime import Engine, Runtime
    from ttstack.slots.take import Slot

_POLL_S = 0.03
_LAST_WORDS_S = 2.0  # an engine that says it failed gets this long to end by itself and to say why


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is over."""

    reason: str
    text: str


class Supervisor:
    """One run's engine, from its start to its end."""

    def __init__(self, folder: RunFolder, orders: Orders, plan: Plan, slot: Slot) -> None:
        self.folder = folder
        self.orders = orders
        self.plan = plan
        self.slot = slot
        self.runtime: Runtime = find_runtime(plan.launch.runtime)
        self.terminated = False
        self.follower = Follower(folder.log)
        self.claim = new_claim(plan.run, plan.arm, myself())
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

    def supervise(self) -> None:
        """Start the engine, watch it, stop it, give the cards back. The state says how that went."""
        self.slot.write(self.claim)
        self.folder.write(self.state)
        try:
            engine = self.runtime.start(self.plan.launch, self.folder, self.plan.extra_env, self.slot.fds)
        except TtxError as error:
            self._over(Ending(error.reason, error.message), None)
            return
        ending = Ending("supervisor_failed", "the supervisor failed, see its log")
        try:
            self._set(engine=engine.leader)
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
        while True:
            self.orders.poll(_POLL_S)
            ended = engine.exit_code() is not None  # asked before the log is read, so that its last words are
            failure = self._read_log()
            if failure is not None:
                return failure
            booting = self.state.phase == "booting"
            if ended:
                return Ending("engine_died", f"the engine ended {'while it booted' if booting else 'while it served'}")
            if booting and (self.state.step == "ready" or health.is_up()):
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

    def _asked_to_end(self) -> Ending | None:
        if self.orders.stop:
            return Ending("stopped", "stopped as asked")
        if self.terminated:
            return Ending("stopped", "stopped by `ttx down` or the system")
        if self.orders.gone and not self.orders.left:
            return Ending("owner_died", "the ttx that ran this ended without stopping it")
        return None

    def _read_log(self) -> Ending | None:
        step = self.state.step
        found = None
        for line in self.follower.lines():
            if self.state.phase == "booting":
                step = later_step(step, line)
            found = found or failure_in(line, serving=self.state.phase == "ready")
        if step != self.state.step:
            self._set(step=step)
        return Ending(found.reason, found.text) if found else None

    def _stop(self, engine: Engine, ending: Ending) -> None:
        if ending.reason == "engine_failed":
            self._wait(engine, _LAST_WORDS_S)
        # The order matters: whatever cannot be written must not keep the engine from being stopped.
        if not self._ended(engine):
            engine.ask_to_stop()
            with suppress(HostError):
                self._set(phase="stopping", reason=ending.reason, text=ending.text)
            if engine.exit_code() is None:
                self._wait(engine, self.plan.launch.stop_grace_s)
            if engine.exit_code() is not None and not self._ended(engine):
                engine.ask_to_stop()  # its first process is gone, others are left
                self._wait(engine, self.plan.launch.stop_grace_s)
        self._over(ending, engine)

    def _ended(self, engine: Engine) -> bool:
        return engine.exit_code() is not None and not self.runtime.find(self.plan.run, engine.leader)

    def _wait(self, engine: Engine, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._ended(engine):
            self.orders.poll(_POLL_S)

    def _over(self, ending: Ending, engine: Engine | None) -> None:
        code = None if engine is None else engine.exit_code()
        if engine is None or self._ended(engine):
            self.slot.release()
            if code is not None and ending.reason == "engine_died":
                ending = replace(ending, text=f"{ending.text}: {how_it_ended(code)}")
            self._set(phase="stopped", reason=ending.reason, text=ending.text, exit_code=code)
            return
        # The engine keeps its copies of the locks: the cards stay taken, and say that they are dirty.
        self.slot.write(replace(self.claim, state="dirty"))
        self.slot.let_go()
        grace = self.plan.launch.stop_grace_s
        text = f"the engine did not stop within {grace} s of being asked to ({ending.text})"
        self._set(phase="dirty", reason="stop_failed", text=text, exit_code=code)


def how_it_ended(code: int) -> str:
    """Say what an exit code means; negative ones are signals, as in ``subprocess``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def settle(folder: RunFolder, orders: Orders, state: State | None) -> None:
    """Close the record when nobody else will: the owner left, or died."""
    while not (orders.done or orders.gone or orders.left):
        orders.poll(_POLL_S)
    if orders.done:
        return
    from ttstack.run.journal import close_left, store_of  # noqa: PLC0415 - a boot does not wait for what it may not need

    outcome: Outcome = "aborted"
    reason, text = "owner_died", "the ttx that ran this ended without stopping it"
    if orders.left and state is not None:
        reason, text = state.reason, state.text
        outcome = "ok" if reason == "stopped" else "failed"
    elif state is not None and state.phase == "dirty":
        reason, text = state.reason, state.text
    exit_code = Exit.DONE if outcome == "ok" else Exit.FAILED
    if outcome == "ok":
        reason, text = "", ""
    close_left(store_of(folder.state), folder, outcome, exit_code, reason, text)


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
    if orders.fds is None and terminated:
        return Exit.FAILED  # our owner sees that we are gone, and closes the record
    if orders.fds is not None:
        plan = read_plan(folder)
        supervisor = Supervisor(folder, orders, plan, adopt(plan.cards, orders.fds, plan.locks, plan.legacy))
        here.append(supervisor)
        supervisor.terminated = bool(terminated)
        supervisor.supervise()
        state = supervisor.state
    settle(folder, orders, state)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
