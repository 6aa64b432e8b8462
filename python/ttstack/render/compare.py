"""The difference of two command lines, in words: which flag, mount or variable parts them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Options of `docker run` that take no value; any other is taken to have one.
_SWITCHES = frozenset(
    ("--rm", "--detach", "-d", "--init", "--interactive", "-i", "--tty", "-t", "-it", "--privileged", "--read-only")
)
_SPELLINGS = {"-e": "--env", "-v": "--volume", "-p": "--publish", "-l": "--label", "-d": "--detach", "-u": "--user"}


_NO_VALUE = "it without a value"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing that a command says: what it is about, and its value (None: it has none)."""

    subject: str
    value: str | None


def differences(expected: Sequence[str], found: Sequence[str], names: tuple[str, str] = ("arm", "unit")) -> list[str]:
    """Say how two command lines differ, one sentence for each thing that differs.

    Both are `docker run ...` (or podman) or an engine's own command. The program is compared without its folder.
    ``names`` are what the two sides are called. The list is empty exactly when the two are equal apart from the
    program's folder.
    """
    if _same_program(expected, found) and list(expected[1:]) == list(found[1:]):
        return []
    left, right = _grouped(expected), _grouped(found)
    sentences = [
        sentence
        for subject in [*left, *(subject for subject in right if subject not in left)]
        for sentence in _compare(subject, left.get(subject), right.get(subject), names)
    ]
    return sentences or [_order(expected, found, names)]


def _program(argv: Sequence[str]) -> str | None:
    if not argv:
        return None
    # Anything but a path is kept whole: "-/usr/bin/docker" is another program to systemd.
    return PurePosixPath(argv[0]).name if argv[0].startswith("/") else argv[0]


def _same_program(expected: Sequence[str], found: Sequence[str]) -> bool:
    return _program(expected) == _program(found)


def _grouped(argv: Sequence[str]) -> dict[str, list[str | None]]:
    groups: dict[str, list[str | None]] = {}
    for entry in _entries(argv):
        groups.setdefault(entry.subject, []).append(entry.value)
    return groups


def _entries(argv: Sequence[str]) -> Iterator[_Entry]:
    program = _program(argv)
    if program is None:
        return
    yield _Entry("program", program)
    words = list(argv[1:])
    if words[:1] == ["run"]:
        yield _Entry("command run", None)
        options, words = _options(words[1:])
        yield from options
        if words:
            yield _Entry("image", words[0])
            words = words[1:]
    yield from _engine(words)


def _options(words: list[str]) -> tuple[list[_Entry], list[str]]:
    """Read the options in front of the image; return them and the rest."""
    entries: list[_Entry] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, attached, value = words[at].partition("=")
        name = _SPELLINGS.get(name, name)
        if attached:
            entries.append(_option(name, value))
        elif words[at] in _SWITCHES or at + 1 == len(words):
            entries.append(_Entry(name, None))
        else:
            at += 1
            entries.append(_option(name, words[at]))
        at += 1
    return entries, words[at:]


def _option(name: str, value: str) -> _Entry:
    """Name what the option is about: a variable by its name, a mount by its target, and so on."""
    if name in {"--env", "--label"}:
        key, has_value, rest = value.partition("=")
        return _Entry(f"{name} {key}", rest if has_value else None)
    if name in {"--device", "--publish"}:
        return _Entry(f"{name} {value.rpartition(':')[2]}", value)
    if name == "--mount":
        fields = dict(field.partition("=")[::2] for field in value.split(","))
        return _Entry(f"{name} {fields.get('dst', '')}", value)
    if name == "--log-opt":
        return _Entry(f"{name} {value.partition('=')[0]}", value.partition("=")[2])
    return _Entry(name, value)


def _engine(words: list[str]) -> Iterator[_Entry]:
    at = positional = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("--"):
            positional += 1
            yield _Entry(f"engine argument {positional}", word)
        elif "=" in word:
            name, _, value = word.partition("=")
            yield _Entry(f"engine flag {name}", value)
        elif at + 1 < len(words) and not words[at + 1].startswith("--"):
            at += 1
            yield _Entry(f"engine flag {word}", words[at])
        else:
            yield _Entry(f"engine flag {word}", None)
        at += 1


def _compare(
    subject: str, left: list[str | None] | None, right: list[str | None] | None, names: tuple[str, str]
) -> Iterator[str]:
    if left == right:
        return
    if left and right and len(left) == len(right) == 1:
        parts = list(_json_parts(left[0], right[0]))
        if parts:
            for path, one, other in parts:
                yield f"{subject}: {path}: {_sides(one, other, names)}"
            return
    yield f"{subject}: {_sides(_shown(left), _shown(right), names)}"


def _sides(one: str, other: str, names: tuple[str, str]) -> str:
    # "arm has nothing" reads better than "arm nothing".
    has = " has" if {one, other} & {"nothing", _NO_VALUE} else ""
    return f"{names[0]}{has} {one}, {names[1]}{has} {other}"


def _shown(values: list[str | None] | None) -> str:
    if values is None:
        return "nothing"
    return " and ".join(_NO_VALUE if value is None else _quoted(value) for value in values)


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_MISSING = object()


def _json_parts(left: str | None, right: str | None) -> Iterator[tuple[str, str, str]]:
    """Name the members in which two JSON objects differ; nothing when one is no object, or only spelling differs."""
    try:
        one, other = json.loads(left or ""), json.loads(right or "")
    except (ValueError, RecursionError):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        yield from _members(one, other, "")


def _members(one: dict[str, object], other: dict[str, object], path: str) -> Iterator[tuple[str, str, str]]:
    for key in [*one, *(key for key in other if key not in one)]:
        mine, yours = one.get(key, _MISSING), other.get(key, _MISSING)
        if isinstance(mine, dict) and isinstance(yours, dict):
            yield from _members(mine, yours, f"{path}{key}.")
        # JSON's true is not 1, though Python's is.
        elif mine != yours or type(mine) is not type(yours):
            yield f"{path}{key}", _member(mine), _member(yours)


def _member(value: object) -> str:
    return "nothing" if value is _MISSING else _quoted(value)


def _order(expected: Sequence[str], found: Sequence[str], names: tuple[str, str]) -> str:
    at = next((at for at, pair in enumerate(zip(expected, found, strict=False)) if at and pair[0] != pair[1]), None)
    same = sorted(expected[1:]) == sorted(found[1:])
    what = "the same arguments in another order" if same else "the same meaning, written differently"
    if at is None:
        at = min(len(expected), len(found))
    sides = [_quoted(argv[at]) if at < len(argv) else "nothing" for argv in (expected, found)]
    return f"{what}: at argument {at}: {_sides(sides[0], sides[1], names)}"
