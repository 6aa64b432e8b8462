"""``ttx``: finds the verb, imports only its module, and turns errors into sentences and exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ttstack import __version__
from ttstack.cli.streams import hold_streams, say, told
from ttstack.errors import Exit, TtxError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS: dict[str, str] = {
    "arm": "list, show, check, render and compare arms",
    "run": "one run from slot to record: boot, identify, measure, stop",
    "bench": "measure any server with a suite; no arm is needed",
    "ab": "measure two arms against each other in pairs, and say whether they differ",
    "up": "take the slot, boot and identify an arm, and leave it running",
    "down": "stop an engine gracefully and free its cards",
    "adopt": "give an engine whose supervisor died a new one",
    "status": "what runs here now",
    "top": "watch cards, slots, runs and tokens per second",
    "card": "which cards there are, and in what state",
    "slot": "who holds which card",
    "cache": "which tensor caches there are, whose, and whether they are whole",
    "doctor": "say whether this host is fit to run engines, and whether it has lost memory",
    "reserve": "say whether an arm's tensor cache could be built now, and what could make room",
    "report": "write what was measured as one page, or as Markdown for a pull request",
    "records": "list and show what was run and measured",
    "unit": "print a systemd unit for an arm, for hosts without NixOS",
    "completion": "print a script that completes ttx's command lines in a shell",
}

GLOBALS: dict[str, str] = {
    "-h, --help": "this page",
    "--version": "the version",
    "-v, --verbose": "echo the command of an engine that is started, on stderr",
    "--arms DIR": "the folder of arms (default: $TTX_ARMS, else ./arms or that of a parent folder,\n"
    "else the arms that came with ttx)",
}
"""Options before the verb. ``ttstack.cli.command.split_globals`` reads them."""

_EXAMPLES = """\
examples:
  ttx arm ls                     which arms there are
  ttx arm render prod --as docker
  ttx run sim                    a whole run with no card
  ttx records show               the newest record

`ttx VERB --help` says more, with examples.
"""


def _usage() -> str:
    verbs, options = _columns(VERBS), _columns(GLOBALS)
    return (
        "usage: ttx [-v] [--arms DIR] VERB ...\n\n"
        "Serve, try and measure models on Tenstorrent Blackhole cards.\n\n"
        f"verbs:\n{verbs}\n"
        f"options:\n{options}\n"
        f"{_EXAMPLES}"
    )


def _columns(rows: dict[str, str]) -> str:
    width = max(map(len, rows))
    further = "\n" + " " * (width + 4)
    return "".join(f"  {name:<{width}}  {text.replace(chr(10), further)}\n" for name, text in rows.items())


def main(argv: Sequence[str]) -> int:
    """Run one command line; return its exit code. Never raises for faults that a person can mend."""
    code: int = Exit.DONE
    try:
        with told():
            code = _dispatch(list(argv))
    except TtxError as error:
        say(f"ttx: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("ttx: interrupted")
        return Exit.INTERRUPTED
    except OSError as error:
        # A disk that is full, a name that is too long: the system's answer is the sentence.
        sys.stdout = None  # the interpreter need not try again
        say(f"ttx: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}")
        return Exit.FAILED
    return code


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in {"-h", "--help"}:
        print(_usage(), end="", file=sys.stdout if words else sys.stderr)
        return Exit.DONE if words else Exit.USAGE
    if words[0] == "--version":
        print(f"ttx {__version__}")
        return Exit.DONE
    from ttstack.cli.command import parse, split_globals  # noqa: PLC0415 - argparse only when there is a verb

    options, rest = split_globals(words)
    if rest and rest[0] in {"-h", "--help"}:
        print(_usage(), end="")
        return Exit.DONE
    name = rest[0] if rest else ""
    if name not in VERBS:
        from ttstack.cli.command import unknown_verb  # noqa: PLC0415

        raise unknown_verb(name, VERBS)
    module = import_module(f"ttstack.cli.verbs.{name}")
    return parse(module, name, VERBS[name], options, rest[1:])


def entry() -> None:
    """Console script. A shell that completes a line asks here, too."""
    if "_ARGCOMPLETE" in os.environ:
        from ttstack.cli.completion import complete  # noqa: PLC0415 - only for a shell that asks

        complete()
    hold_streams()
    sys.exit(main(sys.argv[1:]))
