"""docs/reference/cli.md, made from the parsers of the verbs.

``python -m ttstack.cli.reference > ../docs/reference/cli.md`` refreshes it. It is made from the parsers' arguments and
not from their help pages, which depend on the terminal's width and on the version of Python.
"""

from __future__ import annotations

import sys
from textwrap import dedent
from typing import TYPE_CHECKING

from ttstack.cli.command import sentence
from ttstack.cli.main import GLOBALS, VERBS
from ttstack.cli.parsers import all_parsers, arguments, commands
from ttstack.errors import Exit
from ttstack.markdown import block, code, table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_HEAD = """\
# ttx, verb by verb

Made by `python -m ttstack.cli.reference` from the parsers of the verbs; `ttx VERB --help` says the same. What it keeps,
and where, is in [files.md](files.md).

    ttx [-v] [--arms DIR] VERB ...

stdout is for data, and every verb that prints some has `--json`; everything else is said on stderr. An ARM is the name
of a file in the folder of arms, or the path of any such file: one with a `/` in it, or that ends in `.toml`."""

_EXITS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed",
    Exit.USAGE: "usage, or a bad file",
    Exit.REFUSED: "refused: busy, no space, port in use, dirty card",
    Exit.IDENTITY: "identity refused: what runs is not what the arm says",
    Exit.NOT_QUOTABLE: "measured, but not quotable",
    Exit.INTERRUPTED: "interrupted",
}


def reference_text() -> str:
    """Return the page."""
    lines = [_HEAD, "", *table(("verb", ""), [(f"[{name}](#ttx-{name})", text) for name, text in VERBS.items()]), ""]
    lines += ["## Options before the verb", ""]
    lines += table(("option", "meaning"), [(code(name), " ".join(text.split())) for name, text in GLOBALS.items()])
    lines += ["", "## Exit codes", ""]
    lines += table(("code", "meaning"), [(str(int(each)), _EXITS[each]) for each in Exit])
    for name, parser in all_parsers().items():
        lines += ["", f"## ttx {name}", ""]
        inner = commands(parser)
        if inner:
            lines.append(sentence(VERBS[name]))
            for command, leaf in inner.items():
                lines += ["", f"### ttx {name} {command}", "", *_describe(leaf)]
        else:
            lines += _describe(parser)
    return "\n".join(lines) + "\n"


def _describe(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield str(parser.description)
    yield ""
    yield from block("", _synopsis(parser))
    own = arguments(parser)
    if own:
        yield ""
        yield from table(("argument", "meaning"), [(_names(action), meaning(action)) for action in own])
    yield ""
    yield "Examples:"
    yield ""
    yield from block("", dedent(str(parser.epilog).removeprefix("examples:\n")).splitlines())


def _synopsis(parser: argparse.ArgumentParser, width: int = 100) -> list[str]:
    """Write how a command is called, options in the order of their declaration."""
    groups = [group._group_actions for group in parser._mutually_exclusive_groups]  # noqa: SLF001 - no other way
    words: list[str] = []
    done: list[argparse.Action] = []
    for action in arguments(parser):
        if action in done:
            continue
        group = next((group for group in groups if action in group), [action])
        done += group
        text = " | ".join(map(_call, group))
        words.append(text if _needed(action) else f"[{text}]")
    lines = [parser.prog]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(" " * len(parser.prog))
        lines[-1] += f" {word}"
    return lines


def _needed(action: argparse.Action) -> bool:
    return action.required and action.nargs not in {"?", "*"}


def _call(action: argparse.Action) -> str:
    """Write one argument as it is given, without the brackets that say it may be left out."""
    if not action.option_strings:
        return f"{_value(action)} ..." if action.nargs in {"*", "+"} else _value(action)
    return action.option_strings[-1] if action.nargs == 0 else f"{action.option_strings[-1]} {_value(action)}"


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(_value(action))
    value = "" if action.nargs == 0 or action.choices else f" {_value(action)}"
    return ", ".join(code(f"{name}{value}") for name in action.option_strings)


def meaning(action: argparse.Action) -> str:
    """Say what an argument means, and which values it takes."""
    text = str(action.help) % {**vars(action), "prog": "ttx"}
    return f"{text}: {', '.join(code(str(choice)) for choice in action.choices)}" if action.choices else text


if __name__ == "__main__":
    sys.stdout.write(reference_text())
