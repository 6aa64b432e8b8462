"""An A/B from its first pair to its last. What was measured is in the records; nothing is kept beside them."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ttstack.arm.digest import arm_digest, model_digest, pin_digest
from ttstack.arm.key import cache_key
from ttstack.bench.ab.floor import ab_runs
from ttstack.bench.ab.verdict import judge
from ttstack.cache.marker import read_marker
from ttstack.errors import Exit
from ttstack.host.errors import HostError
from ttstack.host.files import make_directory
from ttstack.host.process import alive, boot_id
from ttstack.host.types import ProcessId
from ttstack.run.ab.cell import CellOrder
from ttstack.run.ab.pair import run_cells
from ttstack.run.ab.plan import lock_path
from ttstack.run.errors import IdentityRefusedError, InterruptedRunError, RunError, RunRefusedError
from ttstack.run.interrupts import Interrupts
from ttstack.run.journal import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ttstack.arm.types import Asked
    from ttstack.bench.ab.cells import AbPair
    from ttstack.bench.ab.design import PlannedCell
    from ttstack.bench.ab.verdict import Report
    from ttstack.errors import TtxError
    from ttstack.host.types import Places
    from ttstack.records.types import Opened
    from ttstack.run.ab.pair import AbReporter, Over, Side
    from ttstack.run.ab.plan import AbPlan

_LOOK_S = 0.2
_ENDING_S = 30.0  # how long runs of an A/B that was killed may take to come to their end before it goes on


def conduct(  # noqa: PLR0913 - by name
    plan: AbPlan,
    places: Places,
    command: Sequence[str],
    reporter: AbReporter,
    *,
    environ: Mapping[str, str],
    wait_s: float | None,
    now: Callable[[], tuple[Asked, Asked]],
) -> Report:
    """Measure all pairs of a plan that are not measured yet; main thread only, since it minds signals.

    ``command`` starts a run as a child (see ``ttstack.run.ab.cell``), ``now`` reads both arms as they are at this
    moment. The answer may be the verdict, or that no more pairs can lead to one. Raises TtxError when it cannot go on:
    interrupted, an arm's file changed, a run that was killed; it may be resumed then.
    """
    conductor = _Conductor(plan, places.state, places.cache, command, reporter, environ, wait_s)
    with _alone(places.state, plan.id), Interrupts() as interrupts:
        report = conductor.settled(interrupts.check)
        conductor.warm_up(interrupts.check)
        while report is None or not (report.finished or report.verdict == "invalid"):
            interrupts.check()
            check_arms(plan, now(), report)
            report = conductor.measure(report, interrupts.check)
        return report


def find(state: Path, name: str) -> Report | None:
    """Compute an A/B from the records of this host; None when there is no run of it. Raises RecordsError."""
    runs = ab_runs(store_of(state).read(lives).runs).get(name)
    return judge(runs) if runs else None


def lives(opened: Opened) -> bool:
    """Whether who opened a run lives, and will close it."""
    owner = opened.owner
    return owner.boot_id == boot_id() and alive(ProcessId(owner.pid, owner.start))


def check_arms(plan: AbPlan, now: tuple[Asked, Asked], report: Report | None) -> None:
    """Refuse to go on with arms that ask for something else than they did. Raises RunRefusedError.

    What was measured stays good: with the files as they were it may go on.
    """
    for side, planned, current in (("A", plan.a, now[0]), ("B", plan.b, now[1])):
        before = [_digests(planned)]
        for cell in () if report is None else report.cells:
            asked = cell.record.opened.asked
            if cell.place.side == side:
                before.append((asked.arm_digest, asked.pin_digest, asked.model_digest))
        if any(digests != _digests(current) for digests in before):
            raise RunRefusedError(
                f"arm {side} ({current.arm.name}) asks for something else than when this A/B began",
                hint=f"put {current.arm.file} and what it names back, then: ttx ab --resume {plan.id}",
                reason="arm_changed",
            )


def _digests(asked: Asked) -> tuple[str, str, str]:
    return arm_digest(asked), pin_digest(asked.pin), model_digest(asked.model)


@dataclass(frozen=True, slots=True)
class _Conductor:
    plan: AbPlan
    state: Path
    cache: Path  # where the tensor caches are
    command: Sequence[str]
    reporter: AbReporter
    environ: Mapping[str, str]
    wait_s: float | None

    def settled(self, check: Callable[[], None]) -> Report | None:
        """Give what there is already, once no run of it goes on: one whose ttx was killed is just ending."""
        until = time.monotonic() + _ENDING_S
        while True:
            report = find(self.state, self.plan.id)
            running = [] if report is None else [cell.record.id for cell in report.cells if cell.running]
            if not running:
                return report
            if time.monotonic() > until:
                hint = f"it is part of this A/B; end it with: ttx down {running[0]}"
                raise RunRefusedError(f"run {running[0]} still goes on", hint=hint, reason="cell_running")
            check()
            time.sleep(_LOOK_S)

    def warm_up(self, check: Callable[[], None]) -> None:
        """Run each arm once whose tensor cache is not complete, as two at once cannot build one.

        It is a run like any other, and part of no pair. Raises TtxError when it fails: so would the pairs.
        """
        for cell in sorted(self.plan.cells()[0], key=lambda cell: cell.side):
            asked = self.plan.asked(cell)
            if _is_warm(asked, self.cache):
                continue
            check()
            order = replace(self._order(cell, 0), place=None)
            self.reporter.warm_up(cell.side, order)
            over = run_cells(self.command, {cell.side: order}, self.reporter, check, environ=self.environ)[cell.side]
            if over.exit_code not in {Exit.DONE, Exit.NOT_QUOTABLE}:
                raise _failed(f"arm {cell.side} does not run, so nothing was measured: {over.text}", over)

    def measure(self, report: Report | None, check: Callable[[], None]) -> Report:
        """Measure the next pair. Raises RunError when one of its runs was cut short."""
        done = set() if report is None else {pair.number for pair in report.pairs if pair.done}
        cells = next(cells for cells in self.plan.cells() if cells[0].pair not in done)
        number = cells[0].pair
        tried = () if report is None else report.cells
        attempt = 1 + max((cell.place.attempt for cell in tried if cell.place.pair == number), default=-1)
        for together in (cells,) if self.plan.mode == "swap" else ((cell,) for cell in cells):
            check()
            orders: dict[Side, CellOrder] = {cell.side: self._order(cell, attempt) for cell in together}
            self.reporter.pair(number, orders, attempt)
            run_cells(self.command, orders, self.reporter, check, environ=self.environ)
            report = find(self.state, self.plan.id)
            pair = _pair(report, number)
            if pair.done:
                break  # after a run that does not count the other one need not be made
        if report is None or not pair.done:
            hint = f"go on with: ttx ab --resume {self.plan.id}"
            raise RunError(f"pair {number + 1} was cut short", hint=hint, reason="cut_short")
        self.reporter.counted(number, [*pair.against, *(why for cell in pair.cells.values() for why in cell.against)])
        return report

    def _order(self, cell: PlannedCell, attempt: int) -> CellOrder:
        arm = self.plan.asked(cell).arm
        return CellOrder(
            file=str(arm.file),
            name=arm.name,
            port=arm.engine.port,
            cards=cell.cards,
            suite=self.plan.suite,
            settings=self.plan.settings,
            wait_s=self.wait_s,
            place=self.plan.place(cell, attempt),
            owner=os.getpid(),
        )


def _is_warm(asked: Asked, cache: Path) -> bool:
    """Whether an arm finds its tensor cache complete."""
    marker = read_marker(cache / cache_key(asked).key)
    return marker is not None and marker.state == "complete"


def _failed(message: str, over: Over) -> TtxError:
    """Make the error that has a run's own exit code."""
    kinds: dict[int, type[TtxError]] = {
        each.exit_code: each for each in (RunRefusedError, IdentityRefusedError, InterruptedRunError)
    }
    return kinds.get(over.exit_code, RunError)(message, hint=f"see: ttx records show {over.run}")


def _pair(report: Report | None, number: int) -> AbPair:
    """Find a pair that was just run. Raises RunError when the records do not have it."""
    for pair in () if report is None else report.pairs:
        if pair.number == number:
            return pair
    raise RunError(f"the records have no run of pair {number + 1}", reason="records_lost")


@contextmanager
def _alone(state: Path, name: str) -> Iterator[None]:
    """See to it that nobody else carries out the same A/B. Raises RunRefusedError."""
    path = lock_path(state, name)
    make_directory(path.parent)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise HostError(f"cannot open {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait for it; what it has so far: ttx ab show " + name
            raise RunRefusedError(f"{name} is being carried out by another ttx", hint=hint, reason="ab_busy") from None
        yield
    finally:
        os.close(handle)
