"""Slots, who has the cards, and runs that lost their supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.doctor.codes import finding
from ttstack.doctor.types import Scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ttstack.doctor.cards import CardsSeen
    from ttstack.doctor.types import Finding
    from ttstack.host.deadline import Outcome
    from ttstack.run.control import LiveRun
    from ttstack.slots.view import SlotView


def judge_slots(views: Sequence[SlotView]) -> Iterator[Finding]:
    """Say who has which card."""
    for view in views:
        name, code = f"{view.card.board} {view.card.bdf}", f"slots.{view.state}"
        if view.state == "held" and view.claim is not None and not view.owner_lives:
            code = "slots.orphan"
        yield finding(code, f"{name}: {view.text or 'nobody has it'}", subject=view.card.id)


def judge_runs(found: Sequence[LiveRun], left_out: Sequence[str]) -> Iterator[Finding]:
    """Say which runs need a hand."""
    quiet = not left_out
    for text in left_out:
        yield finding("runs.unread", text)
    for run in found:
        name = f"run {run.state.run} (arm {run.state.arm})"
        if run.status == "orphaned":
            quiet = False
            hint = f"ttx adopt {run.state.run}, or ttx down {run.state.run}"
            text = f"its engine cannot be looked for: {run.trouble}" if run.trouble else "its engine has no supervisor"
            yield finding("runs.orphaned", f"{name}: {text}", subject=run.state.run, hint=hint)
        elif run.status == "lost":
            quiet = False
            text = f"{name}: supervisor and engine are gone, the record is open"
            yield finding("runs.lost", text, subject=run.state.run, hint=f"ttx down {run.state.run}")
    if quiet:
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
