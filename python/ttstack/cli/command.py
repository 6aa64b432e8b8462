"""What every verb shares: global options, parsing, JSON and table output.

A verb is a module ``ttstack.cli.verbs.NAME`` with ``EXAMPLES: str`` and ``configure(parser) -> None``; each leaf
parser sets ``func``, a callable from ``Context`` and the parsed namespace to an exit code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ttstack.cli.parser import Formatter, Parser
from ttstack.cli.streams import encodable, say, terminal_width
from ttstack.errors import UsageError
from ttstack.near import nearest
from ttstack.printable import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence


_CUT = "..."
_LEAST = 12  # of a last column that is cut; less tells nothing


@dataclass(frozen=True, slots=True)
class Context:
    """The global options."""

    verbose: bool = False
    arms: Path | None = None


class Verb(Protocol):
    """The shape of a verb's module."""

    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's arguments."""


def split_globals(words: Sequence[str]) -> tuple[Context, list[str]]:
    """Take the options that stand before the verb."""
    verbose, arms, at = False, None, 0
    while at < len(words) and words[at].startswith("-") and words[at] not in {"-h", "--help"}:
        word = words[at]
        if word in {"-v", "--verbose"}:
            verbose = True
        elif word == "--arms":
            at += 1
            if at == len(words):
                raise UsageError("--arms needs a folder", hint="such as: ttx --arms ./arms arm ls")
            arms = Path(words[at])
        elif word.startswith("--arms="):
            arms = Path(word.removeprefix("--arms="))
        else:
            hint = "a verb's own options stand after it; see: ttx --help"
            raise UsageError(f"unknown option {word!r} before the verb", hint=hint)
        at += 1
    return Context(verbose, arms), list(words[at:])


def unknown_verb(name: str, verbs: Iterable[str]) -> UsageError:
    """Say which verb was probably meant."""
    what = f"unknown verb {name!r}" if name else "no verb given"
    near = nearest(name, verbs)
    return UsageError(what, hint=f"did you mean: ttx {near}" if near else "see: ttx --help")


def verb_parser(module: object, name: str, summary: str) -> argparse.ArgumentParser:
    """Make the parser of a verb's own arguments."""
    verb = cast("Verb", module)
    parser = Parser(
        prog=f"ttx {name}",
        description=sentence(summary),
        epilog=f"examples:\n{verb.EXAMPLES}",
        formatter_class=Formatter,
    )
    verb.configure(parser)
    parser.default = getattr(verb, "DEFAULT", "")
    return parser


def sentence(summary: str) -> str:
    """Make a sentence of a summary."""
    return f"{summary[:1].upper()}{summary[1:]}."


def parse(module: object, name: str, summary: str, context: Context, words: Sequence[str]) -> int:
    """Parse a verb's own arguments and call what they name."""
    args = verb_parser(module, name, summary).parse_args(words)
    func = cast("Callable[[Context, argparse.Namespace], int]", args.func)
    return func(context, args)


def leaf(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    examples: str,
    func: Callable[[Context, argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a sub-command with help, examples and the function that carries it out."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=sentence(summary),
        epilog=f"examples:\n{examples}",
        formatter_class=Formatter,
    )
    parser.set_defaults(func=func)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON on stdout, for programs")


def print_json(value: object) -> None:
    """Print a value as JSON, one document, keys in the given order."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    print(text if encodable(text) else json.dumps(value, indent=2, allow_nan=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, cut: bool = False) -> None:
    """Print a plain table; the last column is not padded. ``cut``: on a terminal, to what fits into its width."""
    safe = [[printable(cell) for cell in row] for row in [columns, *rows]]
    widths = [max(len(row[i]) for row in safe) for i in range(len(columns))]
    whole = sum(widths) + 2 * (len(widths) - 1)
    most = terminal_width() if cut else whole
    if most < whole - widths[-1] + _LEAST:
        most = whole
    for row in safe:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        print(line if len(line) <= most else f"{line[: most - len(_CUT)]}{_CUT}")


def note(text: str) -> None:
    """Say something to the person, not to a program that reads stdout."""
    say(text)
