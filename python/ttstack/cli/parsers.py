"""All verbs' parsers, for what must know every one of them: the reference, the completion, tests."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ttstack.cli.command import verb_parser
from ttstack.cli.main import VERBS

if TYPE_CHECKING:
    from collections.abc import Mapping


def all_parsers() -> dict[str, argparse.ArgumentParser]:
    """Make the parser of each verb."""
    return {
        name: verb_parser(import_module(f"ttstack.cli.verbs.{name}"), name, summary) for name, summary in VERBS.items()
    }


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """List a parser's own arguments in their order, without ``-h`` and without the choice of a sub-command."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)  # noqa: SLF001 - argparse shows them no other way
    return [action for action in parser._actions if not isinstance(action, hidden)]  # noqa: SLF001


def commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the sub-commands of a verb, by name; none for most verbs."""
    for action in parser._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return cast("Mapping[str, argparse.ArgumentParser]", action.choices)
    return {}
