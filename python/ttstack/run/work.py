"""The phases of a run, in the order in which they happen."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ttstack.arm.key import cache_key
from ttstack.bench.suites import find_suite
from ttstack.host.process import myself
from ttstack.records.types import CardSeen, Identity, Phase
from ttstack.render.build import build_launch
from ttstack.render.cards import choose_cards
from ttstack.run import preflight
from ttstack.run.errors import (
    REFUSED_STARTS,
    IdentityRefusedError,
    InterruptedRunError,
    RunError,
    RunRefusedError,
)
from ttstack.run.identify import Subject, identify, sentence, title
from ttstack.run.journal import Draft
from ttstack.run.plan import Plan, write_plan
from ttstack.run.ready import healthy
from ttstack.run.runtime import find_runtime
from ttstack.run.state import OVER
from ttstack.run.stop import stop_engine
from ttstack.run.texts import BUILDING, Follower
from ttstack.run.waiting import longest_stop, wait_until
from ttstack.run.watch import DEFAULT_LIMITS, Limits
from ttstack.slots.claim import new_claim
from ttstack.slots.take import Request, acquire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ttstack.arm.types import Asked
    from ttstack.host.types import Places
    from ttstack.records.types import IdentityCheck
    from ttstack.render.launch import Launch
    from ttstack.run.interrupts import Interrupts
    from ttstack.run.link import Link
    from ttstack.run.report import Reporter
    from ttstack.run.state import RunFolder, State
    from ttstack.slots.take import Slot

POLL_S = 0.03
DYING_S = 10.0  # what a server may take to end after its engine died


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. ``wait_s`` 0: refuse at once when the cards are busy; None: wait for ever."""

    verb: Literal["run", "up"]
    suite: str = "smoke"  # what ``run`` measures
    wait_s: float | None = 0
    engine_command: tuple[str, ...] | None = None  # in place of the engine's own program
    extra_env: Mapping[str, str] = field(default_factory=dict)
    legacy: Path | None = None  # where older drivers' lock directory is
    listen_wait_s: float = 10.0
    limits: Limits = DEFAULT_LIMITS


@dataclass(slots=True)
class Work:
    """One run. ``run`` raises whatever goes wrong; ``stop`` is called after it in any case."""

    asked: Asked
    places: Places
    options: Options
    reporter: Reporter
    interrupts: Interrupts
    folder: RunFolder
    link: Link
    draft: Draft = field(default_factory=Draft)
    slot: Slot | None = None
    left: bool = False

    def run(self) -> None:
        """Go through all phases but the stop. Raises TtxError."""
        arm = self.asked.arm
        with self._phase("check"):
            find_runtime(arm.engine.runtime).check(self.asked.pin.image)
            preflight.check_model(self.asked.model)
        with self._phase("slot"):
            slot = self._take()
        with self._phase("boot"):
            launch = self._start(slot)
            self._follow()
        with self._phase("identify"), self.interrupts.breaking():
            self._identify(launch)
        if self.options.verb == "up":
            self._leave()
            return
        with self._phase("measure"):
            self._measure()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.reporter.begin(name)
        begun = time.monotonic()
        ok = False
        try:
            yield
            ok = True
        finally:
            seconds = time.monotonic() - begun
            self.draft.phases.append(Phase(name, round(seconds, 6)))
            self.reporter.end(name, ok=ok, seconds=seconds)

    def _take(self) -> Slot:
        cards = self.asked.arm.cards
        request = Request(cards.count, cards.ids, self.options.wait_s, self.options.legacy)
        slot = acquire(request, self.places, waiting=self.reporter.detail, check=self.interrupts.check)
        self.slot = slot
        key = cache_key(self.asked).key
        slot.write(new_claim(self.folder.run, self.asked.arm.name, myself(), cache=key))
        seen = tuple(CardSeen(card.id, card.bdf, card.node) for card in slot.cards)
        self.draft.observed = replace(self.draft.observed, cards=seen)
        self.reporter.detail(", ".join(f"{card.id} ({card.bdf})" for card in slot.cards))
        return slot

    def _start(self, slot: Slot) -> Launch:
        engine = self.asked.arm.engine
        launch = build_launch(
            self.asked,
            choose_cards(self.asked, slot.cards),
            run_id=self.folder.run,
            slots=[card.id for card in slot.cards],
            cache_root=str(self.places.cache),
            engine_command=self.options.engine_command,
        )
        preflight.check_port(engine.host, engine.port)
        preflight.check_cache(launch, self.asked.model)
        warm = preflight.cache_is_warm(launch)
        find_runtime(launch.runtime).prepare(launch, self.places.cache)
        self.draft.observed = replace(self.draft.observed, cache="hit" if warm else "cold", log=str(self.folder.log))
        plan = Plan(
            run=self.folder.run,
            arm=self.asked.arm.name,
            launch=launch,
            extra_env=self.options.extra_env,
            boot_timeout_s=engine.boot_timeout_s,
            cards=slot.cards,
            locks=self.places.locks,
            legacy=self.options.legacy,
            simulated=self.places.simulated,
            limits=self.options.limits,
        )
        write_plan(self.folder, plan)
        self.link.send("start", slot.fds)
        slot.let_go()  # from here on the supervisor has the cards
        return launch

    def _follow(self) -> None:
        step = ""
        while True:
            self.interrupts.check()
            alive = self.link.alive()  # asked first: what it wrote last is then seen
            state = self.folder.read()
            if state is not None:
                if state.step != step:
                    step = state.step
                    self.reporter.detail(step)
                if state.phase == "ready":
                    return
                self._raise_if_over(state)
            if not alive:
                self._check_supervisor()
            time.sleep(POLL_S)

    def _raise_if_over(self, state: State) -> None:
        if state.phase in {"stopping", *OVER}:
            wait_until(lambda: self.folder.over() or not self.link.alive(), longest_stop(state.stop_grace_s))
            over = self.folder.read() or state
            self.reporter.lines(f"the last lines of {self.folder.log}", self.folder.tail())
            if over.reason == "stopped":
                raise InterruptedRunError(over.text)
            if over.reason in REFUSED_STARTS:
                raise RunRefusedError(over.text, reason=over.reason)
            raise RunError(over.text, hint=f"the whole log: {self.folder.log}", reason=over.reason)

    def _identify(self, launch: Launch) -> None:
        state = self._state()
        runtime = find_runtime(launch.runtime)
        log = Follower(self.folder.log).lines()
        inside = runtime.look_inside(state, launch.image)
        subject = Subject(self.asked, launch, state, log, runtime.processes(state), inside)
        found = identify(subject, self._heard, listen_wait_s=self.options.listen_wait_s)
        self.draft.identity = Identity(found.checks)
        cold = any(BUILDING in line for line in log)
        self.draft.observed = replace(
            self.draft.observed,
            banners=found.banners,
            served_root=found.served_root,
            max_model_len=found.max_model_len,
            engine_pid=None if state.engine is None else state.engine.pid,
            image=None if inside is None else inside.image,
            cache_dir=found.cache_dir,
            cache="cold" if cold else self.draft.observed.cache,
        )
        against = [check for check in found.checks if check.ok is not True]
        if against:
            self._raise_if_over(self.folder.read() or state)  # an engine that died is no impostor
            self._check_supervisor()  # nor is one that was killed together with its supervisor
            raise IdentityRefusedError(
                "; ".join(map(sentence, against)), hint=f"nothing was measured; the log: {self.folder.log}"
            )

    def _heard(self, check: IdentityCheck) -> None:
        self.reporter.check(title(check), ok=check.ok, detail="" if check.ok else sentence(check))

    def _leave(self) -> None:
        self.draft.save(self.folder)
        self.interrupts.check()
        self._raise_if_over(self._state())
        self._check_supervisor()
        self.left = True
        self.link.send("leave")
        self.link.close()

    def _measure(self) -> None:
        observed = self.draft.observed
        url = self._state().url
        length = observed.max_model_len or 0
        with self.interrupts.breaking():
            measured = find_suite(self.options.suite)(
                url,
                self.asked.model.served_name,
                length,
                lambda check: self.reporter.check(check.name, ok=check.ok, detail="" if check.ok else check.detail),
            )
        self.draft.measured = measured
        if not measured.ok:
            self._wait_if_dying(url)
        self._raise_if_over(self._state())
        self._check_supervisor()

    def _wait_if_dying(self, url: str) -> None:
        """Tell an engine that fails checks from one that has died: vLLM's server answers 503 until it ends as well."""
        if healthy(url, timeout_s=5.0):
            return

        def ended() -> bool:
            self.interrupts.check()
            return self._state().phase in {"stopping", *OVER} or not self.link.alive()

        wait_until(ended, DYING_S)
        self._raise_if_over(self._state())
        raise RunError("the engine no longer answers", hint=f"its log: {self.folder.log}", reason="engine_died")

    def _check_supervisor(self) -> None:
        if not self.link.alive():
            hint = f"see {self.folder.supervisor_log}"
            raise RunError("the supervisor of the engine died", hint=hint, reason="supervisor_died")

    def _state(self) -> State:
        state = self.folder.read()
        if state is None:
            raise RunError(f"{self.folder.path} has lost its state", reason="state_lost")
        return state

    def stop(self) -> None:
        """Leave no engine and no slot. Raises RunError when the engine does not stop."""
        if self.slot is not None and not self.slot.released:
            self.slot.release()  # it was never handed over
            return
        if self.slot is None:
            return
        with self._phase("stop"):
            self.link.send("stop")
            longest = longest_stop(self.asked.arm.engine.stop_grace_s)
            wait_until(lambda: self.folder.over() or not self.link.alive(), longest)
            state = self.folder.read()
            if state is None:
                return  # the supervisor died before it started anything
            if state.phase not in OVER:
                state = stop_engine(self.folder, state)
            if state.phase == "dirty":
                hint = f"its cards are dirty; `ttx down {self.folder.run} --kill` kills it, they may need a reset then"
                raise RunError(state.text, hint=hint, reason="stop_failed")
            if state.reason == "killed":
                raise RunError(state.text, hint="tt-smi -r resets them, with no holder left", reason="killed")
