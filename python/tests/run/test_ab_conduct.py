"""How an A/B is carried out, with runs that boot nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ab_child import write
from ab_kit import Book

from ttstack.arm.digest import arm_digest, model_digest, pin_digest
from ttstack.arm.load import load
from ttstack.arm.shelf import find_shelf
from ttstack.cache.marker import Marker
from ttstack.errors import Exit, TtxError
from ttstack.run.ab import conduct as conducting
from ttstack.run.ab.conduct import conduct, find
from ttstack.run.ab.pair import Over
from ttstack.run.ab.plan import AbPlan, beside, lock_path
from ttstack.run.errors import IdentityRefusedError, InterruptedRunError, RunError, RunRefusedError
from ttstack.run.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conftest import World

    from ttstack.bench.ab.verdict import Report
    from ttstack.run.ab.cell import CellOrder
    from ttstack.run.ab.pair import Side

CHILD = Path(__file__).with_name("ab_child.py")
TESTS = Path(__file__).parents[1]


@dataclass
class Listener:
    """Keeps what an A/B tells; ``at`` is called with each event."""

    told: list[str] = field(default_factory=list)
    at: Any = None

    def warm_up(self, side: Side, order: CellOrder) -> None:
        self.told.append(f"warm-up {side} on {','.join(order.cards)}")

    def pair(self, number: int, orders: Mapping[Side, CellOrder], attempt: int) -> None:
        self.told.append(f"pair {number}.{attempt} {''.join(orders)}")

    def cell(self, side: Side, event: Mapping[str, Any]) -> None:
        self.told.append(f"{side} {event['event']}")
        if self.at is not None:
            self.at(self, side, event)

    def counted(self, number: int, against: Sequence[str]) -> None:
        self.told.append(f"counted {number} {list(against)}")


@dataclass
class Stage:
    """A plan, and the script of its runs."""

    world: World
    plan: AbPlan
    script: dict[str, Any] = field(default_factory=dict)
    listener: Listener = field(default_factory=Listener)
    count: int = 0

    @property
    def command(self) -> tuple[str, ...]:
        path = self.world.base / "script.json"
        path.write_text(json.dumps(self.script))
        return (sys.executable, str(CHILD), str(self.world.store.path), str(path))

    @property
    def environ(self) -> dict[str, str]:
        return {**self.world.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), self.world.environ["PYTHONPATH"]])}

    def conduct(self, now: Any = None) -> Report:  # noqa: ANN401 - what reads the arms
        """Carry the plan out, with runs that are made within this process."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conducting, "run_cells", self._run_cells)
            return self.conduct_really(now)

    def conduct_really(self, now: Any = None) -> Report:  # noqa: ANN401 - as above
        """Carry the plan out, with runs that are processes."""
        return conduct(
            self.plan,
            self.world.places,
            self.command,
            self.listener,
            environ=self.environ,
            wait_s=0,
            now=now or (lambda: (self.plan.a, self.plan.b)),
        )

    def _run_cells(self, _command: object, orders: Mapping[Side, CellOrder], *_: object, **__: object) -> object:
        self.count += len(orders)
        book = Book(self.world.store.path, 1000 + self.count)
        made = {side: write(book, self.script, order) for side, order in orders.items()}
        return {side: Over(run, code, "") for side, (run, code) in made.items()}

    def said(self) -> list[str]:
        return self.world.store.path.with_suffix(".log").read_text().splitlines()


@pytest.fixture
def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(conducting, "_LOOK_S", 0.01)
    monkeypatch.setattr(conducting, "_is_warm", lambda *_: True)
    shelf = find_shelf(world.base / "arms", {}, world.base)
    a, b = (load(str(world.arm(name)), shelf) for name in ("one", "two"))
    plan = AbPlan("ab-1", a, beside(a, b), "swap", 4, ("c0", "c1"), "smoke", {}, "request_s")
    made = Stage(world, plan)
    for each in (a, b):
        made.script.setdefault("digests", {})[each.arm.name] = {
            "arm_digest": arm_digest(each),
            "pin_digest": pin_digest(each.pin),
            "model_digest": model_digest(each.model),
        }
    return made


def test_a_plan_is_carried_out_to_its_verdict(stage: Stage) -> None:
    stage.script["B"] = {"value": 0.8}
    report = stage.conduct()
    assert (report.verdict, report.counted, len(report.cells)) == ("better", 4, 8)
    assert [line for line in stage.listener.told if line.startswith("pair")] == [f"pair {n}.0 AB" for n in range(4)]
    assert [line for line in stage.listener.told if line.startswith("counted")] == [f"counted {n} []" for n in range(4)]
    assert {cell.cards for cell in report.cells} == {("c0",), ("c1",)}


def test_nothing_is_measured_twice(stage: Stage) -> None:
    stage.conduct()
    before = len(stage.world.store.read().runs)
    assert stage.conduct().finished
    assert len(stage.world.store.read().runs) == before == 8


def test_two_at_once_measure_at_the_same_time(stage: Stage) -> None:
    """Neither is measured while the other boots, and none stops while the other is measured."""
    stage.script["A"] = {"boot_s": 0.3}
    stage.script["B1.0"] = {"refused": 3}
    stage.script["A2.0"] = {"nothing": "enough"}
    with pytest.raises(RunError, match="arm A could not be run: enough"):
        stage.conduct_really()
    first = [line.split()[1] for line in stage.said() if line.split()[0] in {"A0", "B0"}]
    assert [word for word in first if word != "boots"] == 2 * ["booted"] + 2 * ["measures"] + 2 * ["stops"]
    # Who has no partner left does not wait for him.
    assert [line.split()[1] for line in stage.said() if line.startswith("A1")] == [
        "boots",
        "booted",
        "measures",
        "stops",
    ]


def test_turns_are_one_after_the_other(stage: Stage) -> None:
    stage.plan = replace(stage.plan, mode="turns", cards=("c0",))
    report = stage.conduct()
    assert (report.mode, report.counted) == ("turns", 4)
    assert "".join(line[-1] for line in stage.listener.told if line.startswith("pair")) == "ABBABAAB"
    assert [cell.place.position for cell in report.cells] == list(range(8))
    assert {cell.cards for cell in report.cells} == {("c0",)}


def test_after_a_run_that_does_not_count_the_other_is_not_made(stage: Stage) -> None:
    stage.plan = replace(stage.plan, mode="turns", cards=("c0",))
    stage.script["A0.0"] = {"refused": 3}
    report = stage.conduct()
    assert (report.counted, report.missing, len(report.cells)) == (3, 1, 7)
    assert [cell.place.side for cell in report.pairs[0].cells.values()] == ["A"]


def test_identity_that_is_refused_twice_is_the_end(stage: Stage) -> None:
    stage.script["B"] = {"refused": 4}
    report = stage.conduct()
    assert (report.verdict, report.exit_code, report.missing) == ("insufficient", Exit.IDENTITY, 2)
    assert len(report.cells) == 4
    assert "counted 1 ['refused: as the script says']" in stage.listener.told


def test_other_answers_are_the_end_at_once(stage: Stage) -> None:
    stage.script["B"] = {"outputs": {"count": "something else"}}
    report = stage.conduct()
    assert (report.verdict, len(report.cells)) == ("invalid", 2)


def test_an_arm_that_was_asked_for_something_else_is_the_end(stage: Stage) -> None:
    stage.script["A2.0"] = {"arm": {"args": {"max-num-seqs": 7}}}
    report = stage.conduct()
    assert (report.verdict, len(report.cells)) == ("invalid", 6)
    assert "arm.engine.args.max-num-seqs" in report.reasons[0]


def test_an_arm_whose_file_changed_is_not_run(stage: Stage) -> None:
    changed = replace(stage.plan.b, arm=replace(stage.plan.b.arm, env={"X": "1"}))
    asked = iter([(stage.plan.a, stage.plan.b), (stage.plan.a, changed)])
    with pytest.raises(RunRefusedError, match=r"arm B \(two\) asks for something else") as caught:
        stage.conduct(lambda: next(asked))
    assert caught.value.reason == "arm_changed"
    assert len(stage.world.store.read().runs) == 2
    assert stage.conduct().counted == 4  # with the file as it was it goes on


def test_what_was_measured_before_counts_for_what_an_arm_is(stage: Stage) -> None:
    stage.script["B0.0"] = {"interrupted": True}
    with pytest.raises(RunError, match="cut short"):
        stage.conduct()
    stage.plan = replace(stage.plan, b=replace(stage.plan.b, arm=replace(stage.plan.b.arm, env={"X": "1"})))
    with pytest.raises(RunRefusedError, match="arm B"):
        stage.conduct()


def test_a_run_that_is_killed_stops_it_and_it_goes_on_later(stage: Stage) -> None:
    stage.script["B1.0"] = {"says": "ValueError: of the child", "dies": True}
    with pytest.raises(RunError, match=r"killed by SIGKILL\): ValueError: of the child"):
        stage.conduct_really()
    assert find(stage.world.places.state, "ab-1").counted == 1  # type: ignore[union-attr]
    report = stage.conduct()
    assert (report.verdict, report.counted, len(report.cells)) == ("no difference detected", 4, 9)
    assert "pair 1.1 AB" in stage.listener.told
    assert [cell.place.side for cell in report.pairs[1].others] == ["A"]


def test_a_signal_ends_both_runs_in_order(stage: Stage) -> None:
    def interrupt(listener: Listener, side: Side, event: Mapping[str, Any]) -> None:
        if side == "A" and event["event"] == "begin" and "pair 1.0 AB" in listener.told:
            os.kill(os.getpid(), signal.SIGINT)

    stage.script["A1.0"] = stage.script["B1.0"] = {"hangs": True}
    stage.listener.at = interrupt
    with pytest.raises(InterruptedRunError):
        stage.conduct_really()
    report = find(stage.world.places.state, "ab-1")
    assert report is not None
    assert [cell.record.outcome for cell in report.cells] == ["ok", "ok", "interrupted", "interrupted"]
    stage.listener.at = None
    again = stage.conduct()
    assert (again.counted, len(again.cells)) == (4, 10)


def test_killed_at_any_moment_it_ends_its_runs_and_goes_on(stage: Stage) -> None:
    """Killed while both runs measure: they end by themselves, and their pair is measured again."""
    stage.script["A1.0"] = {"kill_owner": True}
    stage.script["B1.0"] = {"hangs": True}
    code = f"""
import sys
sys.path[:0] = [{str(TESTS)!r}, {str(CHILD.parent)!r}]
from test_ab_conduct import in_a_process
in_a_process({str(stage.world.base)!r}, {list(stage.command)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], env=stage.environ, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL

    def ended() -> bool:
        runs = stage.world.store.read().runs
        return len(runs) == 4 and all(run.closed for run in runs)

    assert wait_until(ended, 20)
    report = stage.conduct()
    assert (report.verdict, report.counted) == ("no difference detected", 4)
    assert [cell.record.outcome for cell in report.pairs[1].others] == ["interrupted", "interrupted"]


def in_a_process(base: str, command: Sequence[str]) -> None:
    """Carry out the same plan, in a process that may be killed."""
    from ttstack.host.places import find_places  # noqa: PLC0415 - of the other process

    conducting._is_warm = lambda *_: True  # type: ignore[assignment]
    shelf = find_shelf(Path(base) / "arms", {}, Path(base))
    a, b = (load(f"{base}/arms/{name}.toml", shelf) for name in ("one", "two"))
    plan = AbPlan("ab-1", a, beside(a, b), "swap", 4, ("c0", "c1"), "smoke", {}, "request_s")
    places = find_places(simulated=True, environ=os.environ)
    conduct(plan, places, command, Listener(), environ=os.environ, wait_s=0, now=lambda: (plan.a, plan.b))


def test_only_one_carries_it_out(stage: Stage) -> None:
    import fcntl  # noqa: PLC0415 - as the other one does

    path = lock_path(stage.world.places.state, "ab-1")
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RunRefusedError, match="another ttx"):
            stage.conduct()
    assert not stage.world.store.path.exists()


def test_a_run_that_goes_on_is_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conducting, "_ENDING_S", 0.05)
    stage.script["B0.0"] = {"interrupted": True}
    with pytest.raises(RunError, match="cut short"):
        stage.conduct()
    monkeypatch.setattr(conducting, "find", lambda *_: _running(find(stage.world.places.state, "ab-1")))
    with pytest.raises(RunRefusedError, match="still goes on"):
        stage.conduct()


def _running(report: Report | None) -> Report:
    assert report is not None
    pair = report.pairs[0]
    cells = {
        side: replace(cell, record=replace(cell.record, close_line=None, alive=True))
        for side, cell in pair.cells.items()
    }
    return replace(report, pairs=(replace(pair, cells=cells),))


# The tensor caches


@pytest.mark.parametrize(("state", "warm"), [("complete", True), ("building", False), ("broken", False), (None, False)])
def test_only_a_complete_cache_is_warm(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    state: str | None,
    warm: bool,  # noqa: FBT001 - a table's column
) -> None:
    monkeypatch.undo()
    marker = None if state is None else Marker.__new__(Marker)
    if marker is not None:
        object.__setattr__(marker, "state", state)
    monkeypatch.setattr(conducting, "read_marker", lambda _folder: marker)
    assert conducting._is_warm(stage.plan.a, stage.world.places.cache) is warm


def test_a_cold_cache_is_built_before_the_first_pair(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = iter([False, True])
    monkeypatch.setattr(conducting, "_is_warm", lambda *_: next(cold))
    report = stage.conduct()
    assert stage.listener.told[0] == "warm-up A on c0"
    assert report.counted == 4
    runs = stage.world.store.read().runs
    assert [run.opened.ab is None for run in runs] == [True] + 8 * [False]


@pytest.mark.parametrize(
    ("code", "kind"), [(4, IdentityRefusedError), (3, RunRefusedError), (1, RunError), (130, InterruptedRunError)]
)
def test_an_arm_that_does_not_run_once_is_not_run_in_pairs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[TtxError]
) -> None:
    monkeypatch.setattr(conducting, "_is_warm", lambda *_: False)
    monkeypatch.setattr(conducting, "run_cells", lambda *_, **__: {"A": Over("r-1", code, "so it is")})
    with pytest.raises(kind, match="arm A does not run, so nothing was measured: so it is"):
        stage.conduct_really()
