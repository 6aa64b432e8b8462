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
    from collections.abc import Iterable, Iterator, Mapping

    from ttstack.cache.ground import Ground
    from ttstack.host.units import Unit

_KEY = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{16}(?![0-9A-Za-z])")
_PATH = re.compile(r"/[^\s,:;'\"|&<>(){}]+")
# Each with words one of which is in whatever it matches: to look for those takes a tenth of the time.
_MOUNTED = (
    (("src=", "source="), re.compile(r"\b(?:src|source)=([^,\n]+)")),  # --mount; a path may hold blanks
    (("src=", "source="), re.compile(r"\b(?:src|source)=([^\s,]+)")),
    (("-v",), re.compile(r"(?:^|\s)(?:-v|--volume)[\s=]*['\"]?([^\s:]+):", re.MULTILINE)),
    (("TT_",), re.compile(r"\bTT_(?:CACHE_PATH|METAL_CACHE)=['\"]?([^\s'\"]+)")),
    (("Bind",), re.compile(r"^\s*Bind(?:ReadOnly)?Paths\s*=\s*-?([^\s:]+)", re.MULTILINE)),
)
_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})")
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=(?=['\"]?([^\s'\"]+))")  # Environment=NAME=VALUE has two
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# What no more can be said of: a variable that nothing sets, a specifier of a template.
_MOST = 100  # paths of one word
_UNKNOWN = re.compile(r"[$%]")
# systemd.unit(5), "Specifiers": those that are the same for every unit of the system manager.
_FOLDERS = {"%C": "/var/cache", "%S": "/var/lib", "%t": "/run", "%L": "/var/log", "%E": "/etc", "%h": "/root"}
_PERCENT, _DOLLAR = "\ue000", "\ue001"  # stand for %% and $$
_ENGINE = re.compile(r"\bTT_(?:CACHE_PATH|METAL_CACHE|METAL_HOME)\b|\bvllm\b|\bttx(?:-sim)?\b|\bttstack\b")
_ENGINE_WORDS = ("TT_", "vllm", "ttx", "ttstack")
_CLIENTS = ("docker", "podman")
_OURS = ("ttx-", "tenstorrent-")


def used_by(unit: Unit, root: Path, ground: Ground) -> tuple[list[Use], list[str]]:
    """Find what of a root a unit uses; and say what of an engine's unit could not be read."""
    client = _has(unit.text, _CLIENTS) and CLIENT.search(unit.text) is not None
    engine = _has(unit.text, _ENGINE_WORDS) and _ENGINE.search(unit.text) is not None
    strict = client or engine or unit.name.startswith(_OURS)
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
    if strict and unit.hidden and (not client or _VARIABLE.search(text)):
        unread += [f"{unit.name} cannot be read completely: {what}" for what in unit.hidden]
    return [Use("unit", path, f"unit {unit.name}") for path in found], unread


def _has(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def _hidden(unit: Unit, path: str, error: OSError) -> list[str]:
    if isinstance(error, PermissionError):
        return [f"{unit.name} names {path}, which this user may not look at"]
    return []  # a word that only looks like a path


def _plain(text: str) -> str:
    """Undo escapes (systemd.syntax(7)) and known specifiers; what was doubled stays apart until it is a path."""
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "\\x" in text else text
    plain = plain.replace("%%", _PERCENT).replace("$$", _DOLLAR)
    for specifier, folder in _FOLDERS.items() if "%" in plain else ():
        plain = plain.replace(specifier, folder)
    return plain


def _single(path: str) -> str:
    return path.replace(_PERCENT, "%").replace(_DOLLAR, "$")


def _paths(text: str, root: Path) -> Iterator[str]:
    """Give what may be paths; below the root also when the root's own path is no single word."""
    yield from map(_single, dict.fromkeys(_PATH.findall(text)))
    for spelled in {str(root), os.path.realpath(root)}:
        if spelled not in text:
            continue
        for match in re.finditer(rf"{re.escape(spelled)}/+([^\s,:;'\"]+)", text):
            yield _single(f"{spelled}/{match[1]}")


def _mounted(text: str) -> Iterator[str]:
    """Give what is mounted or named to an engine, as far as it is known."""
    words = dict.fromkeys(
        match[1].strip() for marks, pattern in _MOUNTED if _has(text, marks) for match in pattern.finditer(text)
    )
    values: dict[str, dict[str, None]] = {}
    for name, value in _ASSIGNED.findall(text) if any("$" in word for word in words) else ():
        values.setdefault(name, {})[value] = None
    for path in dict.fromkeys(path for word in words for path in _expanded(word, values)):
        unknown = _UNKNOWN.search(path)
        # What is not known may be anything in the folder that is.
        known = path[: unknown.start()].rpartition("/")[0] if unknown else path
        if known.startswith("/"):
            yield _single(known)


def _expanded(word: str, values: Mapping[str, Iterable[str]]) -> list[str]:
    """Put in each value that a variable has anywhere in the text: which of them is in effect is not known."""
    found = [word]
    for name in dict.fromkeys(match[1] or match[2] for match in _VARIABLE.finditer(word)):
        spelled = re.compile(rf"\$(?:\{{{name}\}}|{name}(?!\w))")
        put = [value.join(spelled.split(path)) for path in found for value in values.get(name, ())]
        if put and len(put) <= _MOST:
            found = put
    return found
