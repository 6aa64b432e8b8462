"""What the shells ask for at each TAB: argcomplete over the parser of the verb on the line, and over no other verb's.

The shells' scripts (``ttx completion``) call ttx with ``_ARGCOMPLETE`` set and the line in ``COMP_LINE``.
"""

from __future__ import annotations

import argparse
import json
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ttstack.cli.main import GLOBALS, VERBS
from ttstack.cli.parsers import arguments, commands
from ttstack.errors import TtxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ttstack.cli.command import Verb

    Values = Callable[[str, argparse.Namespace], Iterable[str]]

_ARMS = "global_arms"
_TAIL_BYTES = 1 << 20  # of records: the newest few hundred runs


def complete() -> None:
    """Answer the shell that asks, and exit."""
    import argcomplete  # noqa: PLC0415 - only for a shell that asks

    # Options are offered after a dash only: they would hide what a command is mostly called with.
    argcomplete.autocomplete(line_parser(os.environ.get("COMP_LINE", "")), always_complete_options=False)


def line_parser(line: str) -> argparse.ArgumentParser:
    """Make the parser of a whole command line, in which only the verbs that the line names have arguments."""
    root = argparse.ArgumentParser(prog="ttx", add_help=False)
    for spelling, text in GLOBALS.items():
        names, _, value = spelling.partition(" ") if ", " not in spelling else (spelling, "", "")
        options = names.split(", ")
        dest = f"global_{options[-1].strip('-')}"
        if value:
            _attach(root, root.add_argument(*options, dest=dest, metavar=value, help=text))
        else:
            root.add_argument(*options, dest=dest, action="store_true", help=text)
    verbs = root.add_subparsers(metavar="VERB")
    words = line.split()
    for name, summary in VERBS.items():
        parser = verbs.add_parser(name, help=summary)
        if name in words:
            cast("Verb", import_module(f"ttstack.cli.verbs.{name}")).configure(parser)
            for each in (parser, *commands(parser).values()):
                for action in arguments(each):
                    _attach(each, action)
    return root


def _attach(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
    """Say where argcomplete finds an argument's values. Those with choices are known to it."""
    values = values_of(parser.prog, action)
    if values is None:
        return

    def completer(*, prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
        with suppress(TtxError, OSError):  # a shell that asks is no place for complaints
            return list(values(prefix, parsed_args))
        return []

    action.completer = completer  # type: ignore[attr-defined] # argcomplete looks for it there


def values_of(prog: str, action: argparse.Action) -> Values | None:
    """Find where the values of an argument come from: by its name in the usage, for some commands apart."""
    if action.nargs == 0 or action.choices is not None:
        return None
    return _VALUES.get(f"{prog} {action.metavar}") or _VALUES[str(action.metavar)]


def _nothing(_prefix: str, _args: argparse.Namespace) -> Iterable[str]:
    return ()


def _arms(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    from ttstack.arm.shelf import arm_names, find_shelf  # noqa: PLC0415 - only for a line that asks for it

    folder = getattr(args, _ARMS, None)
    names: list[str] = []
    with suppress(TtxError):
        shelf = find_shelf(Path(folder) if folder else None, os.environ, Path.cwd())
        names = [name for name in arm_names(shelf) if name.startswith(prefix)]
    return names or _files(prefix, args, ".toml")


def _runs(_prefix: str, _args: argparse.Namespace) -> Iterable[str]:
    from ttstack.host.places import state_folder  # noqa: PLC0415 - only for a line that asks for it
    from ttstack.run.state import run_folders  # noqa: PLC0415

    return (folder.run for folder in run_folders(state_folder(os.environ)))


def _unsettled_runs(_prefix: str, _args: argparse.Namespace) -> Iterator[str]:
    """Name what may be stopped, by run id and by arm. Whether it lives is the verb's to find out."""
    from ttstack.host.places import state_folder  # noqa: PLC0415 - only for a line that asks for it
    from ttstack.run.state import run_folders  # noqa: PLC0415

    for folder in run_folders(state_folder(os.environ)):
        with suppress(TtxError):
            state = folder.read()
            if state is not None and state.phase != "stopped":
                yield state.run
                yield state.arm


def _recorded_runs(_prefix: str, args: argparse.Namespace) -> Iterator[str]:
    """Name the newest runs of the records. Only their names are looked for: a TAB validates nothing."""
    from ttstack.host.places import records_file, state_folder  # noqa: PLC0415 - only for a line that asks for it

    path = getattr(args, "records", None) or records_file(state_folder(os.environ))
    with Path(path).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        lines = file.read().splitlines()
    yield "last"
    for line in lines:
        if b'"kind":"open"' in line:
            with suppress(ValueError):  # the first line may be a part of one
                yield str(json.loads(line).get("run", ""))


def _records(prefix: str, args: argparse.Namespace) -> Iterator[str]:
    """Name files of records, and runs of this host."""
    yield from _files(prefix, args, ".jsonl")
    with suppress(OSError):
        yield from _recorded_runs(prefix, argparse.Namespace())


def _abs(_prefix: str, _args: argparse.Namespace) -> Iterable[str]:
    """Name the A/Bs that were carried out here, each of which left the file of its lock."""
    from ttstack.host.places import state_folder  # noqa: PLC0415 - only for a line that asks for it

    return sorted(path.stem for path in (state_folder(os.environ) / "ab").glob("*.lock"))


def _keys(_prefix: str, _args: argparse.Namespace) -> Iterator[str]:
    """Name the directories of caches by their paths from the root."""
    from ttstack.cache.tree import folders  # noqa: PLC0415 - only for a line that asks for it
    from ttstack.cli.hosts import all_places  # noqa: PLC0415

    for places in all_places(os.environ):
        with suppress(TtxError):
            yield from (key for key, _ in folders(places.cache))


def _suites(_prefix: str, _args: argparse.Namespace) -> Iterable[str]:
    from ttstack.bench.suites.registry import SUITES  # noqa: PLC0415 - only for a line that asks for it

    return SUITES


def _settings(prefix: str, args: argparse.Namespace) -> Iterator[str]:
    """Name the settings of the suite that is on the line, each with its default."""
    from ttstack.bench.suites.registry import find_suite  # noqa: PLC0415 - only for a line that asks for it
    from ttstack.bench.suites.settings import describe  # noqa: PLC0415

    for name, default, _ in describe(find_suite(args.suite).settings):
        yield f"{name}={default if prefix.startswith(f'{name}=') else ''}"


def _variables(_prefix: str, _args: argparse.Namespace) -> Iterable[str]:
    return os.environ


def _files(prefix: str, _args: argparse.Namespace, suffix: str = "") -> Iterator[str]:
    """List folders, and files that end in a suffix. ``~`` stays as it was typed."""
    folder, name = os.path.split(prefix)
    for entry in sorted(os.scandir(Path(folder or ".").expanduser()), key=lambda entry: entry.name):
        if not entry.name.startswith(name) or (entry.name.startswith(".") and not name):
            continue
        if entry.is_dir():
            yield f"{os.path.join(folder, entry.name)}/"  # noqa: PTH118 - a Path would drop a leading ./
        elif entry.name.endswith(suffix):
            yield os.path.join(folder, entry.name)  # noqa: PTH118 - as above


def _folders(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    return (path for path in _files(prefix, args) if path.endswith("/"))


_VALUES: dict[str, Values] = {
    **dict.fromkeys(("ARM", "A", "B"), _arms),
    "RUN": _runs,
    "ttx down RUN": _unsettled_runs,
    "ttx adopt RUN": _unsettled_runs,
    "ttx records show RUN": _recorded_runs,
    "RECORDS": _records,
    "SUITE": _suites,
    "KEY=VALUE": _settings,
    "VARIABLE": _variables,
    "DIR": _folders,
    **dict.fromkeys(("FILE", "PATH"), _files),
    **dict.fromkeys(
        (
            "SECONDS",
            "N",
            "UID:GID",
            "CARDS",
            "CMD",
            "CARD|RUN",
            "SHARE",
            "METRIC",
            "URL",
            "NAME",
            "WHEN",
            "TEXT",
            "SQL",
        ),
        _nothing,
    ),
    "ID": _abs,
    "KEY": _keys,
}
"""Name of a value in the usage, with the command before it where it means something else there -> its values."""
