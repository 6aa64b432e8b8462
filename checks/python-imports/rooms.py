#!/usr/bin/env python3
"""Check which rooms of a package import what: ``rooms.py PACKAGE``, with PACKAGE the folder of ttstack.

A room may import itself and the rooms before it in ROOMS; what stands beside them (GROUND) is below all.
Some modules of the standard library, and ``print``, are for some rooms only. Prints one line per breach; exit 1 if any.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# From the ground up.
ROOMS = (
    *("arm", "host", "render", "slots", "cache", "stage", "records", "bench"),
    *("run", "doctor", "dev", "images", "bundle", "sim", "cli"),
)
GROUND = {"", "errors", "markdown", "near", "printable"}

# module -> the rooms that may not import it. These start processes or talk to the outside; argparse is the face's.
STARTS = ("asyncio", "multiprocessing", "pty", "socket", "subprocess")
BARRED: dict[str, set[str]] = {name: {*GROUND, "arm", "render"} for name in STARTS}
BARRED["argparse"] = {*GROUND, *ROOMS} - {"cli"}
MAY_PRINT = {"cli"}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, by its full dotted name."""

    name: str
    line: int


def _base(module: tuple[str, ...], is_package: bool, level: int) -> tuple[str, ...]:  # noqa: FBT001 - private
    """Return the package that a relative import of this level starts from."""
    package = module if is_package else module[:-1]
    return package[: len(package) - level + 1]


def imports(tree: ast.Module, module: tuple[str, ...], *, is_package: bool) -> Iterator[Import]:
    """Yield every import of a module, wherever it stands: late ones and those for type checkers count too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*_base(module, is_package, node.level),) if node.level else ()
            start = ".".join([*base, *([node.module] if node.module else [])])
            # `from ttstack import slots` imports a room; `from ttstack.errors import Exit` adds a name to a module.
            yield from (Import(f"{start}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield Import(node.args[0].value, node.lineno)


def room_of(parts: tuple[str, ...]) -> str:
    """Return the room of a module below the package, or "" for the package itself."""
    return parts[1] if len(parts) > 1 else ""


def _breach(room: str, name: str, package: str) -> str | None:
    """Say what is wrong with an import, or nothing."""
    parts = tuple(name.split("."))
    if parts[0] != package:
        if room in BARRED.get(parts[0], set()):
            return f"{room or package} may not import {parts[0]}"
        return None
    target = room_of(parts)
    if target not in ROOMS or target == room:  # a name of the package itself, such as __version__, or of errors
        return None
    if room in GROUND:
        return f"{room or package} is below every room and may not import {target}"
    if ROOMS.index(target) > ROOMS.index(room):
        return f"{room} may not import {target}, which is above it"
    return None


def check_file(file: Path, package: Path) -> list[str]:
    """Return the breaches of one file."""
    relative = file.relative_to(package.parent).with_suffix("")
    is_package = relative.name == "__init__"
    module = relative.parts[:-1] if is_package else relative.parts
    room = room_of(module)
    if room not in GROUND and room not in ROOMS:
        return [f"{file}: {room} is not one of the rooms: add it to ROOMS of this check where it belongs"]
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    found = [
        (item.line, breach)
        for item in imports(tree, module, is_package=is_package)
        if (breach := _breach(room, item.name, package.name))
    ]
    if room not in MAY_PRINT:
        found += [
            (node.lineno, f"{room or package.name} may not print")
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
    return [f"{file}:{line}: {text}" for line, text in dict.fromkeys(sorted(found))]


def check(package: Path) -> list[str]:
    """Return every breach in a package."""
    return [line for file in sorted(package.rglob("*.py")) for line in check_file(file, package)]


def main(argv: list[str]) -> int:
    """Print the breaches."""
    if len(argv) != 1 or not Path(argv[0], "__init__.py").is_file():
        print(__doc__, file=sys.stderr)
        return 2
    found = check(Path(argv[0]).resolve())
    print("\n".join(found) if found else "rooms import only downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
