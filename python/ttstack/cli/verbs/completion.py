"""``ttx completion``: print a shell's completion script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttstack.errors import Exit

if TYPE_CHECKING:
    import argparse

    from ttstack.cli.command import Context

EXAMPLES = """\
  eval "$(ttx completion bash)"                  in ~/.bashrc
  eval "$(ttx completion zsh)"                   in ~/.zshrc, after compinit
  ttx completion fish | source                   in ~/.config/fish/config.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that the script is for")
    parser.set_defaults(func=_completion)


def _completion(_context: Context, args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - only this verb needs it

    print(shellcode(["ttx"], shell=args.shell))
    return Exit.DONE
