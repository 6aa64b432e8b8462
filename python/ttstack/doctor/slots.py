"""Slots, who has the cards, and runs that lost their supervisor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttstack.doctor.codes import finding
from ttstack.doctor.types import Scan
from ttstack.run.control import runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ttstack.doctor.cards import CardsSeen
    from ttstack.doctor.types import Finding
    from ttstack.host.deadline import Outcome
    from ttstack.run.control import LiveStatus
    from ttstack.slots.view import SlotView


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run that is not over."""

    run: str
    arm: str
    status: LiveStatus
    trouble: str  # why it could not be learned what of its engine is left


@dataclass(frozen=True, slots=True)
class RunsSeen:
    """What runs here; ``left_out``: a sentence for each run whose state cannot be read."""

    runs: tuple[RunSeen, ...] = ()
    left_out: tuple[str, ...] = ()


def judge_slots(views: Sequence[SlotView], *, simulated: bool = False) -> Iterator[Finding]:
    """Say who has which card."""
    for view in views:
        name, code = f"{view.card.board} {view.card.bdf}", f"slots.{view.state}"
        name = f"simulated {name}" if simulated else name
        if view.state == "held" and view.claim is not None and not view.owner_lives:
            code = "slots.orphan"
        yield finding(code, f"{name}: {view.text or 'nobody has it'}", subject=view.card.id)


def look_at_runs(state: Path) -> RunsSeen:
    """Look at all runs that are not over. Raises nothing for one that cannot be read."""
    left_out: list[str] = []
    found = [run for run in runs(state, left_out.append) if run.status != "stopped"]
    seen = [RunSeen(run.state.run, run.state.arm, run.status, run.trouble) for run in found]
    return RunsSeen(tuple(seen), tuple(left_out))


def judge_runs(seen: RunsSeen) -> Iterator[Finding]:
    """Say which runs need a hand."""
    for text in seen.left_out:
        yield finding("runs.unread", text)
    for run in seen.runs:
        name = f"run {run.run} (arm {run.arm})"
        if run.status == "orphaned":
            text = f"its engine cannot be looked for: {run.trouble}" if run.trouble else "its engine has no supervisor"
            hint = f"ttx adopt {run.run}, or ttx down {run.run}"
            yield finding("runs.orphaned", f"{name}: {text}", subject=run.run, hint=hint)
        elif run.status == "lost":
            text = f"{name}: supervisor and engine are gone, the record is open"
            yield finding("runs.lost", text, subject=run.run, hint=f"ttx down {run.run}")
    if not seen.left_out and not any(run.status in {"orphaned", "lost"} for run in seen.runs):
        yield finding("runs.settled", "every run here has a supervisor, or is over")


def scan(cards: Outcome, slots: Outcome) -> Scan:
    """Sum up who may have memory pinned for one of the real host's cards. What is not known is never "nobody"."""
    seen: CardsSeen | None = cards.value
    here = seen is None or bool(seen.cards or seen.unbound or seen.nodeless or seen.driver)
    blind = [f"cards: {cards.trouble}"] if cards.trouble else []
    if slots.trouble:
        return Scan((), (*blind, f"slots: {slots.trouble}"), here)
    holders: list[str] = []
    if seen is not None:
        blind += [f"the card {bdf} has no node here, so who has it cannot be seen" for bdf in seen.nodeless]
        if not seen.cards and seen.in_use:
            blind.append("tt-kmd has no card here, and somebody uses it (/sys/module/tenstorrent/refcnt)")
    for view in slots.value:
        name = f"card {view.card.id}"
        if view.state in {"held", "dirty"}:
            holders.append(f"{name}: {view.text}")
        holders += [f"{name}: {holder}" for holder in (*view.holders.found, *view.holders.containers)]
        if view.holders.unseen:
            blind.append(f"{name}: {view.holders.unseen} processes of other users could not be looked into")
        blind += [f"{name}: {trouble}" for trouble in view.holders.troubles]
    return Scan(tuple(dict.fromkeys(holders)), tuple(dict.fromkeys(blind)), here)
