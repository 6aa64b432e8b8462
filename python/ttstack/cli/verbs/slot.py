"""``ttx slot``: who holds which card, and cards for programs that are no arm's engine."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ttstack.cli.command import add_json, leaf, note, print_json, print_table
from ttstack.cli.hosts import all_places, places_for
from ttstack.cli.starting import add_wait, seconds, wait_s
from ttstack.cli.streams import told
from ttstack.errors import Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from ttstack.cli.command import Context
    from ttstack.host.types import Card, Places
    from ttstack.slots.claim import Claim
    from ttstack.slots.take import Slot
    from ttstack.slots.view import SlotView

EXAMPLES = """\
  ttx slot ls
  ttx slot run -- python3 train.py
  ttx slot hold --for 600
"""
_LS_EXAMPLES = """\
  ttx slot ls
  ttx slot ls --json
"""
_RUN_EXAMPLES = """\
  ttx slot run -- python3 train.py
  ttx slot run --cards 2 --wait 3600 -- pytest tests/device
  ttx slot run --ids 0000:01:00.0 --no-wait -- tt-smi -s
  ttx slot run --sim -- sh -c 'echo $TT_VISIBLE_DEVICES'
"""
_HOLD_EXAMPLES = """\
  ttx slot hold --cards 2
  ttx slot hold --ids 0000:01:00.0 --for 600
"""
_RELEASE_EXAMPLES = """\
  ttx slot release 0000:01:00.0
  ttx slot release slot-4711
"""
_COLUMNS = ("CARD", "BDF", "NODE", "BOARD", "STATE", "WHO")
_RELEASE_S = 10.0
_SHOWN = 80  # characters of a command line that stand in a lock file


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_json(leaf(commands, "ls", "list the cards of this host and who holds them", _LS_EXAMPLES, _ls))
    run = leaf(commands, "run", "run a program with cards of its own; exit with its code", _RUN_EXAMPLES, _run)
    _add_request(run)
    run.add_argument(
        "--inherit",
        action="store_true",
        help="what the program starts keeps the cards, too, after the program has ended",
    )
    run.add_argument("program", metavar="CMD", nargs="+", help="the program and its arguments, after --")
    hold = leaf(commands, "hold", "hold cards until Ctrl-C, SIGTERM or the end of a time", _HOLD_EXAMPLES, _hold)
    _add_request(hold)
    hold.add_argument(
        "--for", dest="for_s", type=seconds, metavar="SECONDS", help="how long (default: until told to end)"
    )
    add_json(hold)
    release = leaf(
        commands, "release", "ask `ttx slot run` or `ttx slot hold` to give cards back", _RELEASE_EXAMPLES, _release
    )
    release.add_argument("what", metavar="CARD|RUN", help="a card, or the run that `ttx slot ls` shows")


def _add_request(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--cards", type=int, default=1, metavar="N", help="how many cards, whichever are free (1)")
    which.add_argument("--ids", metavar="CARDS", help="these cards, with commas: BDF, serial, or udev's name")
    add_wait(parser)
    parser.add_argument("--sim", action="store_true", help="cards of the simulated host")


def _run(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.slots.errors import ProgramError  # noqa: PLC0415 - help and completion need not wait for it
    from ttstack.slots.keeper import keep  # noqa: PLC0415
    from ttstack.slots.program import find_program, run_program  # noqa: PLC0415

    try:
        find_program(args.program[0])
        with _slot(args, args.program, heirs=args.inherit) as (slot, claim, places):
            env = {**os.environ, **_environment(slot.cards, places)}
            if args.inherit:
                return run_program(args.program, env, slot.fds)
            return run_program(args.program, env, beside=keep(slot, claim))
    except ProgramError as error:
        note(f"ttx: {error}")
        return error.exit_status


def _hold(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.slots.program import wait_for_end  # noqa: PLC0415 - as above

    if args.for_s is not None and not args.for_s >= 0:
        raise UsageError(f"--for {args.for_s:g} is no time to hold cards", hint="a number of seconds, 0 or more")
    with _slot(args, ["ttx", "slot", "hold"]) as (slot, _, places):
        with told():
            if args.json:
                print_json(
                    {
                        "run": _run_id(),
                        "cards": [card.id for card in slot.cards],
                        "environment": _environment(slot.cards, places),
                    }
                )
            else:
                for name, value in _environment(slot.cards, places).items():
                    print(f"{name}={value}")
        note(f"ttx: holding {_names(slot.cards)}; give back with: ttx slot release {_run_id()}")
        wait_for_end(args.for_s)
    return Exit.DONE


@contextmanager
def _slot(
    args: argparse.Namespace, program: Sequence[str], *, heirs: bool = False
) -> Iterator[tuple[Slot, Claim, Places]]:
    from shlex import join  # noqa: PLC0415 - as above

    from ttstack.host.process import myself  # noqa: PLC0415
    from ttstack.slots.claim import new_claim  # noqa: PLC0415
    from ttstack.slots.legacy import legacy_place  # noqa: PLC0415
    from ttstack.slots.program import interruptible  # noqa: PLC0415
    from ttstack.slots.take import Request, acquire  # noqa: PLC0415

    names = tuple(args.ids.split(",")) if args.ids is not None else ()
    count = len(names) or args.cards
    if count < 1:
        raise UsageError(f"--cards {count} is no number of cards", hint="1 or more")
    patience = wait_s(args)
    places = places_for(os.environ, simulated=args.sim)
    request = Request(count, names, patience, None if args.sim else legacy_place(os.environ))
    with interruptible():
        slot = acquire(request, places, waiting=lambda why: note(f"ttx: waiting: {why}"))
        try:
            claim = new_claim(_run_id(), join(program)[:_SHOWN], myself(), "program")
            slot.write(claim)
            yield slot, claim, places
        finally:
            slot.release(heirs=heirs)


def _run_id() -> str:
    return f"slot-{os.getpid()}"


def _environment(cards: Sequence[Card], places: Places) -> dict[str, str]:
    from ttstack.render.cards import visible_to_process  # noqa: PLC0415 - as above

    found = {
        "TT_VISIBLE_DEVICES": ",".join(visible_to_process(cards, simulated=places.simulated)),
        "TTX_CARDS": ",".join(card.id for card in cards),
    }
    return {**found, "TTX_SIM_DEV": str(places.roots.dev / "tenstorrent")} if places.simulated else found


def _names(cards: Sequence[Card]) -> str:
    return ", ".join(f"{card.id} ({card.bdf})" for card in cards)


def _release(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.slots.giveback import ask_back  # noqa: PLC0415 - as above
    from ttstack.slots.view import look  # noqa: PLC0415

    seen = [(places, look(places)) for places in all_places(os.environ)]
    for places, views in seen:
        runs = {view.claim.run for view in views if view.claim is not None and _means(view, args.what)}
        mine = [view for view in views if view.claim is not None and view.claim.run in runs]
        mine = mine or [view for view in views if view.card.goes_by(args.what) and view.state != "free"]
        if mine:
            ask_back(mine, places, _RELEASE_S)
            print(f"given back: {_names([view.card for view in mine])}")
            return Exit.DONE
    if any(view.card.goes_by(args.what) for _, views in seen for view in views):
        note(f"card {args.what} is free")
        return Exit.DONE
    raise UsageError(f"there is no card and no holder {args.what!r}", hint="see: ttx slot ls")


def _means(view: SlotView, what: str) -> bool:
    return view.card.goes_by(what) or (view.claim is not None and view.claim.run == what)


def _ls(_context: Context, args: argparse.Namespace) -> int:
    from ttstack.records.build import jsonable  # noqa: PLC0415 - as above
    from ttstack.slots.view import look  # noqa: PLC0415

    found = [(places, view) for places in all_places(os.environ) for view in look(places)]
    if args.json:
        print_json(
            [
                {
                    "card": jsonable(view.card),
                    "id": view.card.id,
                    "simulated": places.simulated,
                    "state": view.state,
                    "who": view.text,
                    "claim": None if view.claim is None else view.claim.to_note(),
                    "owner_lives": view.owner_lives,
                }
                for places, view in found
            ]
        )
    elif found:
        rows = [
            (
                view.card.id,
                view.card.bdf,
                "simulated" if places.simulated else view.card.node,
                view.card.board,
                view.state,
                view.text,
            )
            for places, view in found
        ]
        print_table(_COLUMNS, rows)
    else:
        note("this host has no cards; `ttx run sim` makes simulated ones")
    return Exit.DONE
