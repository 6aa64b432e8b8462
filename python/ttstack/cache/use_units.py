"""Which directories under a root the services of this host use, by all that is known of their commands.

Words of a unit's text are followed as paths, through links and mounts; a word that is a key counts wherever it stands.
This reads too much rather than too little: ``systemctl show`` quotes nothing, scripts are not run, and a cache that is
kept for nothing is no harm. A folder that holds the root counts only where a mount or an engine's variable names it,
as `find /var` in some unit is no use of a cache.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ttstack.cache.types import Use
from ttstack.host.units import CLIENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ttstack.cache.ground import Ground
    from ttstack.host.units import Unit

_KEY = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{16}(?![0-9A-Za-z])")
_PATH = re.compile(r"/[^\s,:;'\"|&<>(){}]+")
_MOUNTED = (
    re.compile(r"\b(?:src|source)=([^,\n]+)"),  # --mount; a path may hold blanks
    re.compile(r"\b(?:src|source)=([^\s,]+)"),
    re.compile(r"(?:^|\s)(?:-v|--volume)[\s=]*['\"]?([^\s:]+):", re.MULTILINE),
    re.compile(r"\bTT_(?:CACHE_PATH|METAL_CACHE)=['\"]?([^\s'\"]+)"),
    re.compile(r"^\s*Bind(?:ReadOnly)?Paths\s*=\s*-?([^\s:]+)", re.MULTILINE),
)
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=['\"]?([^\s'\"]+)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# What no more can be said of: a variable that nothing sets, a specifier of a template.
_UNKNOWN = re.compile(r"[$%]")
# systemd.unit(5), "Specifiers": those that are the same for every unit of the system manager.
_FOLDERS = {"%C": "/var/cache", "%S": "/var/lib", "%t": "/run", "%L": "/var/log", "%E": "/etc", "%h": "/root"}
_PERCENT, _DOLLAR = "\ue000", "\ue001"  # stand for %% and $$
_ENGINE = re.compile(r"\bTT_(?:CACHE_PATH|METAL_CACHE|METAL_HOME)\b|\bvllm\b|\bttx(?:-sim)?\b|\bttstack\b")
_OURS = ("ttx-", "tenstorrent-")


def used_by(unit: Unit, root: Path, ground: Ground) -> tuple[list[Use], list[str]]:
    """Find what of a root a unit uses; and say what of an engine's unit could not be read."""
    strict = unit.name.startswith(_OURS) or bool(CLIENT.search(unit.text) or _ENGINE.search(unit.text))
    text = _plain(unit.text)
    found: dict[Path, None] = dict.fromkeys(root / key for key in _KEY.findall(text))
    unread: list[str] = []
    for path in _paths(text, root):
        try:
            if ground.within(path, root) and not ground.within(root, path):
                found[Path(path)] = None
        except OSError as error:
            unread += _hidden(unit, path, error) if strict else ()
    for path in _mounted(text):
        try:
            if ground.within(path, root) or ground.within(root, path):
                found[Path(path)] = None
        except OSError as error:
            unread += _hidden(unit, path, error) if strict else ()
    # The environment of a container's client is not the container's, unless the command puts it there.
    if strict and (not CLIENT.search(unit.text) or _VARIABLE.search(text)):
        unread += [f"{unit.name} cannot be read completely: {what}" for what in unit.hidden]
    return [Use("unit", path, f"unit {unit.name}") for path in found], unread


def _hidden(unit: Unit, path: str, error: OSError) -> list[str]:
    if isinstance(error, PermissionError):
        return [f"{unit.name} names {path}, which this user may not look at"]
    return []  # a word that only looks like a path


def _plain(text: str) -> str:
    """Undo escapes (systemd.syntax(7)) and known specifiers; what was doubled stays apart until it is a path."""
    plain = re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)
    plain = plain.replace("%%", _PERCENT).replace("$$", _DOLLAR)
    for specifier, folder in _FOLDERS.items():
        plain = plain.replace(specifier, folder)
    return plain


def _single(path: str) -> str:
    return path.replace(_PERCENT, "%").replace(_DOLLAR, "$")


def _paths(text: str, root: Path) -> Iterator[str]:
    """Give what may be paths; below the root also when the root's own path is no single word."""
    yield from map(_single, dict.fromkeys(_PATH.findall(text)))
    for spelled in {str(root), os.path.realpath(root)}:
        for match in re.finditer(rf"{re.escape(spelled)}/+([^\s,:;'\"]+)", text):
            yield _single(f"{spelled}/{match[1]}")


def _mounted(text: str) -> Iterator[str]:
    """Give what is mounted or named to an engine, as far as it is known."""
    values = dict(_ASSIGNED.findall(text))
    words = (match[1].strip() for pattern in _MOUNTED for match in pattern.finditer(text))
    for word in dict.fromkeys(words):
        path = _VARIABLE.sub(lambda match: _value(match, values), word)
        unknown = _UNKNOWN.search(path)
        if unknown:  # it may be anything in the folder that is known
            path = path[: unknown.start()].rpartition("/")[0]
        if path.startswith("/"):
            yield _single(path)


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    return values.get(match[1] or match[2], match[0])
