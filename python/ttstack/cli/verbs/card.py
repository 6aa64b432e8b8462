"""``ttx card``: which cards there are, and in what state."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.errors import Exit

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context
    from ttstack.host.types import Card, Places
    from ttstack.slots.view import SlotView

EXAMPLES = """\
  ttx card ls
  ttx card ls --json
"""
_SUMMARY = "list the cards of this host, without opening one"
_COLUMNS = ("NODE", "BDF", "BOARD", "SERIAL", "FIRMWARE", "DRIVER", "NUMA", "IOMMU", "HUGEPAGES", "HEARTBEAT", "SLOT")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_json(leaf(commands, "ls", _SUMMARY, EXAMPLES, _ls))


def _ls(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.cli.hosts import all_places, lacking_hugepages  # noqa: PLC0415 - help need not wait for the rooms
    from ttstack.slots.view import look  # noqa: PLC0415

    rows: list[tuple[str, ...]] = []
    entries: list[dict[str, object]] = []
    lacking: list[str] = []
    for places in all_places(os.environ):
        views = look(places)
        cards = [view.card for view in views]
        alive = _alive(cards, places)
        rows += [_row(view, places, alive=alive[view.card.id]) for view in views]
        entries += [_entry(view, places, alive=alive[view.card.id]) for view in views]
        lacking += filter(None, [lacking_hugepages(cards, places.roots)])
    if args.json:
        print_json(entries)
    elif rows:
        print_table(_COLUMNS, rows)
    else:
        note("this host has no cards; `ttx run sim` makes simulated ones")
    for text in lacking:
        note(f"ttx: {text}")
    return Exit.DONE


def _alive(cards: list[Card], places: Places) -> dict[str, bool | None]:
    """Ask for heartbeats. A simulated card has no firmware, and its counter is a file that stands still."""
    from ttstack.host.cards import beating  # noqa: PLC0415 - as above

    return {card.id: None for card in cards} if places.simulated else beating(cards, places.roots)


def _row(view: SlotView, places: Places, *, alive: bool | None) -> tuple[str, ...]:
    card = view.card
    beat = "simulated" if places.simulated else {True: "alive", False: "STOPPED", None: "not told"}[alive]
    return (
        f"{card.number} (simulated)" if places.simulated else str(card.number),
        card.bdf,
        card.board,
        card.serial or "not told",
        card.firmware or "not told",
        card.driver or "not told",
        "-" if card.numa_node is None else str(card.numa_node),
        card.iommu or "none",
        "needed" if card.hugepages_needed else "no",
        beat,
        view.state,
    )


def _entry(view: SlotView, places: Places, *, alive: bool | None) -> dict[str, object]:
    from ttstack.host.cards import reserved_hugepages  # noqa: PLC0415 - as above
    from ttstack.records.build import jsonable  # noqa: PLC0415

    return {
        "card": jsonable(view.card),
        "id": view.card.id,
        "simulated": places.simulated,
        "alive": alive,
        "hugepages_reserved": reserved_hugepages(places.roots),
        "slot": {"state": view.state, "who": view.text, "looked": str(view.holders)},
    }
