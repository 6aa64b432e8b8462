"""The phases of a run, in the order in which they happen."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ttstack.arm.key import cache_key
from ttstack.host.process import myself
from ttstack.records.build import timestamp
from ttstack.records.types import Identity, Phase
from ttstack.run import preflight
from ttstack.run.caches import CacheWanted
from ttstack.run.errors import (
    REFUSED_STARTS,
    IdentityRefusedError,
    InterruptedRunError,
    RunError,
    RunRefusedError,
)
from ttstack.run.identify import Subject, identify, sentence, title
from ttstack.run.journal import Draft, cards_seen
from ttstack.run.logscan import read_log
from ttstack.run.measuring import measure, target_of
from ttstack.run.plan import write_plan
from ttstack.run.preparing import launch_of, on_cards, plan_of
from ttstack.run.ready import healthy
from ttstack.run.runtime import find_runtime
from ttstack.run.state import OVER
from ttstack.run.stop import stop_engine
from ttstack.run.waiting import longest_stop, wait_until
from ttstack.slots.claim import new_claim
from ttstack.slots.take import Request, acquire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttstack.arm.types import Asked
    from ttstack.host.types import Places
    from ttstack.records.types import IdentityCheck
    from ttstack.render.launch import Launch
    from ttstack.run.caches import CacheInUse
    from ttstack.run.interrupts import Interrupts
    from ttstack.run.link import Link
    from ttstack.run.options import Options
    from ttstack.run.report import Reporter
    from ttstack.run.state import RunFolder, State
    from ttstack.slots.take import Slot

POLL_S = 0.03
WARMTH = {"hit": "complete", "seed": "built with files of another one", "cold": "built by this boot"}
DYING_S = 10.0  # what a server may take to end after its engine died


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
    cache: CacheInUse | None = None
    left: bool = False

    def run(self) -> None:
        """Go through all phases but the stop. Raises TtxError."""
        arm = self.asked.arm
        with self._phase("check"):
            find_runtime(arm.engine.runtime).check(self.asked.pin.image)
            preflight.check_model(self.asked.model)
        with self._phase("slot"):
            slot = self._take()
        with self._phase("cache"):
            launch = self._prepare(slot)
        with self._phase("boot"):
            self._start(slot, launch)
            self._follow()
        with self._phase("identify"):
            with self.interrupts.breaking():
                wrote = self._identify(launch)
            self._complete(wrote=wrote)
        if self.options.verb == "up":
            self._leave()
            return
        with self._phase("measure"):
            self._measure()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.reporter.begin(name)
        begun, start = time.monotonic(), timestamp()
        ok = False
        try:
            yield
            ok = True
        finally:
            seconds = time.monotonic() - begun
            self.draft.phases.append(Phase(name, round(seconds, 6), start))
            self.reporter.end(name, ok=ok, seconds=seconds)

    def _take(self) -> Slot:
        cards = self.asked.arm.cards
        request = Request(cards.count, self.options.cards or cards.ids, self.options.wait_s, self.options.legacy)
        slot = acquire(request, self.places, waiting=self.reporter.detail, check=self.interrupts.check)
        self.slot = slot
        key = cache_key(self.asked).key
        slot.write(new_claim(self.folder.run, self.asked.arm.name, myself(), cache=key))
        self.draft.observed = replace(
            self.draft.observed, cards=cards_seen(on_cards(self.asked, self.options), slot.cards)
        )
        self.reporter.detail(", ".join(f"{card.id} ({card.bdf})" for card in slot.cards))
        return slot

    def _prepare(self, slot: Slot) -> Launch:
        launch = launch_of(self.asked, self.places, self.options, self.folder.run, slot)
        preflight.check(self.asked, launch, self.options.limits_on(self.places))
        runtime = find_runtime(launch.runtime)
        # The supervisor is the builder: it outlives this ttx, and is there as long as somebody minds the engine.
        claim = new_claim(self.folder.run, self.asked.arm.name, self.link.process, cache=launch.cache_key)
        wanted = CacheWanted(self.asked, launch, self.places, claim, runtime.owner(launch.image))
        detail = self.reporter.detail
        self.cache = wanted.begin(detail, self.interrupts.check)
        warmth, work = self.cache.held.warmth, self.cache.work
        self.draft.observed = replace(self.draft.observed, cache=warmth, cache_work=work, log=str(self.folder.log))
        detail(f"{launch.cache_key}: {WARMTH[warmth]}")
        runtime.prepare(launch, self.places.cache)
        return launch

    def _start(self, slot: Slot, launch: Launch) -> None:
        cache = self._cache()
        plan = plan_of(self.asked, launch, self.places, self.options, slot.cards)
        write_plan(self.folder, replace(plan, building=cache.building, expected=cache.held.marker.expected))
        self.draft.save(self.folder)  # for whoever must close the run should we be killed
        self.link.send("start", (*slot.fds, cache.held.lock))
        slot.let_go()  # from here on the supervisor has the cards

    def _cache(self) -> CacheInUse:
        if self.cache is None:
            raise RunError("the run has no tensor cache yet", reason="internal")
        return self.cache

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

    def _identify(self, launch: Launch) -> bool:
        """Ask everything; return whether the engine wrote into the tensor cache."""
        state = self._state()
        runtime = find_runtime(launch.runtime)
        log = read_log(self.folder.log, self.asked.arm.expect.banners, launch.cache_path)
        inside = runtime.look_inside(state, launch.image)
        subject = Subject(self.asked, launch, state, log, runtime.processes(state), inside)
        found = identify(subject, self._heard, listen_wait_s=self.options.listen_wait_s)
        self.draft.identity = Identity(found.checks)
        self.draft.observed = replace(
            self.draft.observed,
            banners=found.banners,
            served_root=found.served_root,
            max_model_len=found.max_model_len,
            engine_pid=None if state.engine is None else state.engine.pid,
            image=None if inside is None else inside.image,
            cache_dir=found.cache_dir,
        )
        against = [check for check in found.checks if check.ok is not True]
        if against:
            self._raise_if_over(self.folder.read() or state)  # an engine that died is no impostor
            self._check_supervisor()  # nor is one that was killed together with its supervisor
            text = "; ".join(map(sentence, against))
            self._broken(f"what ran is not what was asked: {text}")
            raise IdentityRefusedError(text, hint=f"nothing was measured; the log: {self.folder.log}")
        return log.building

    def _complete(self, *, wrote: bool) -> None:
        work = self._cache().complete(wrote=wrote)
        self.draft.observed = replace(self.draft.observed, cache_work=work)

    def _broken(self, reason: str) -> None:
        """Settle a build that did not come to its end. Whoever did so first has told the reason."""
        if self.cache is not None:
            self.draft.observed = replace(self.draft.observed, cache_work=self.cache.fail(reason))

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
        self._cache().let_go()

    def _measure(self) -> None:
        url = self._state().url
        cards = () if self.slot is None else self.slot.cards
        target = target_of(self.asked, self.places, cards, url, self.draft.observed.max_model_len)
        with self.interrupts.breaking():
            measured = measure(target, self.options, self.reporter, self.interrupts.check)
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
        """Leave no engine and no slot, and no build of a cache that looks alive.

        Raises RunError when the engine does not stop.
        """
        try:
            self._stop()
        finally:
            if self.cache is not None:
                self.cache.let_go()

    def _stop(self) -> None:
        if self.slot is None:
            return
        if not self.slot.released:  # it was never handed over
            if self.cache is not None:
                self.cache.withdraw()
            self.slot.release()
            return
        with self._phase("stop"):
            self.link.send("stop")
            longest = longest_stop(self.asked.arm.engine.stop_grace_s)
            wait_until(lambda: self.folder.over() or not self.link.alive(), longest)
            state = self.folder.read()
            if state is None:
                self._cache().withdraw()  # the supervisor died before it started anything
                return
            if state.phase not in OVER:
                state = stop_engine(self.folder, state)
            self._broken(state.text or "its supervisor died")
            if state.phase == "dirty":
                hint = f"its cards are dirty; `ttx down {self.folder.run} --kill` kills it, they may need a reset then"
                raise RunError(state.text, hint=hint, reason="stop_failed")
            if state.reason == "killed":
                raise RunError(state.text, hint="tt-smi -r resets them, with no holder left", reason="killed")
