"""The parser of every verb: argparse, whose complaints end with the way out as those of the rooms do."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any, NoReturn

from ttstack.cli.streams import terminal_width
from ttstack.errors import UsageError
from ttstack.near import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS, _MARGIN = 80, 2
_MISSING = "the following arguments are required: "


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps a description's lines. Is told the width, which argparse would ask for each option, by way of `shutil`."""

    def __init__(self, prog: str, **more: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__(prog, **{"width": _width(), **more})


def _width() -> int:
    """Follow what shutil.get_terminal_size() says, less the two columns that argparse leaves."""
    told = os.environ.get("COLUMNS", "")
    return (int(told) if told.isdecimal() and int(told) else terminal_width() or _COLUMNS) - _MARGIN


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse writes its usage and exits."""

    default = ""  # the command that is meant where a line names none

    def error(self, message: str) -> NoReturn:
        """Refuse the line, with the usage of what was called: argparse calls this for all that it finds."""
        if message.startswith(_MISSING):
            message = f"`{self.prog}` needs {message.removeprefix(_MISSING)}"
        way_out = [" ".join(self.format_usage().split()), f"see: {self.prog} --help"]
        way_out[:0] = [
            f"{action.metavar} is one of {_listed(action)}" for action in self._actions if _has_commands(action)
        ]
        raise UsageError(message.removeprefix("argument "), hint="\n  ".join(way_out))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401 - argparse's
        """Parse, and refuse what is left over here, where it is known what was called: argparse does so at its root."""
        if self.default and args and args[0] not in {"-h", "--help", *self._commands()}:
            args = [self.default, *args]
        found, extras = super().parse_known_args(args, namespace)
        if extras:
            self._refuse(extras)
        return found, extras

    def _commands(self) -> list[str]:
        return [name for action in self._actions if _has_commands(action) for name in action.choices or ()]

    def _refuse(self, extras: Sequence[str]) -> NoReturn:
        if not extras[0].startswith("-"):
            self.error(f"{extras[0]!r} is one argument too many")
        option = extras[0].partition("=")[0]
        known = [name.lstrip("-") for action in self._actions for name in action.option_strings]
        near = nearest(option.lstrip("-"), known)
        raise UsageError(f"`{self.prog}` has no option {option!r}", hint=self._way_out(f"--{near}" if near else ""))

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - argparse's
        """Refuse what is not among an argument's choices."""
        if action.choices is None or value in action.choices:
            return
        what = action.option_strings[-1] if action.option_strings else action.metavar
        hint = self._way_out(nearest(str(value), map(str, action.choices)))
        raise UsageError(f"{what} of `{self.prog}` is one of {_listed(action)}, not {value!r}", hint=hint)

    def _way_out(self, near: str) -> str:
        return f"did you mean: {near}" if near else f"see: {self.prog} --help"


def _listed(action: argparse.Action) -> str:
    return ", ".join(map(str, action.choices or ()))


def _has_commands(action: argparse.Action) -> bool:
    return action.nargs == argparse.PARSER
