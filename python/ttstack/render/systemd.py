r"""Systemd's quoting: ``encode`` writes it as NixOS does, ``decode`` reads it as the man pages say.

The two share no code on purpose. ``encode`` is NixOS's ``utils.escapeSystemdExecArgs``: each argument as a JSON string,
then ``%`` and ``$`` doubled. ``decode`` follows systemd.syntax(7) "Quoting", systemd.service(5) "Command lines" and
systemd.unit(5) "Specifiers": words are unquoted first and escapes (``\n``, ``\x0a``, ``\u000a``) resolved, then
specifiers, then variables; so ``\x25n`` is a specifier, too. It refuses whatever would not be exactly one known text
(specifiers, variables) or that the man pages do not promise (quotes inside a word, unknown escapes, bytes that are
no UTF-8), even where systemd itself only warns: ``systemd-analyze verify`` accepts a bare ``100%``.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

from ttstack.arm.fields import ENV_NAME
from ttstack.render.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PREFIXES = "@-:+!|"  # systemd.service(5), "Special executable prefixes"; "|" since systemd 258
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# What systemd's utf8_is_valid refuses: surrogates and Unicode's 66 noncharacters; and NUL.
_IMPOSSIBLE = re.compile(
    "[\0\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)
_BYTE = 0xFF
_WHITE = " \t"
_QUOTES = "'\""
# systemd.syntax(7), table 1. \x and octal name a byte, \u and \U a code point.
_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'", "s": " ",
}  # fmt: skip
_NUMBERS = (
    (re.compile(r"x([0-9a-fA-F]{2})"), 16, True),
    (re.compile(r"([0-7]{3})"), 8, True),
    (re.compile(r"u([0-9a-fA-F]{4})"), 16, False),
    (re.compile(r"U([0-9a-fA-F]{8})"), 16, False),
)


def encode(argv: Sequence[str]) -> str:
    r"""Write arguments as systemd reads them back, as NixOS's ``utils.escapeSystemdExecArgs`` does.

    Control characters are JSON's escapes, which systemd knows (``\b \f \n \r \t \u001f``); DEL stays as it is.
    Raises RenderError for NUL (no argument can hold it) and for surrogates and noncharacters (systemd drops a line
    that holds one).
    """
    return " ".join(_quoted(word).replace("%", "%%").replace("$", "$$") for word in argv)


def command_line(argv: Sequence[str]) -> str:
    """``encode`` for a whole ``Exec...=`` line, whose first word is the program.

    Raises RenderError also for a program that systemd would read otherwise: it must be an absolute path or a plain
    name; control characters are refused, and so is ``$``, which systemd does not undouble in the program's path.
    """
    if not argv:
        raise RenderError("an empty command line")
    _check_program(argv[0])
    return encode(argv)


def environment_line(name: str, value: str) -> str:
    """Write ``NAME=value`` for ``Environment=``: quoted, ``%`` doubled and ``$`` not, as systemd.exec(5) says.

    Raises RenderError for a name that is none and for control characters, which systemd rejects in values.
    """
    if not re.fullmatch(ENV_NAME, name):
        raise RenderError(f"{name!r} cannot be the name of an environment variable")
    if _CONTROL.search(value):
        raise RenderError(
            f"the value of {name} holds a control character, which Environment= cannot", hint="use EnvironmentFile="
        )
    return quote(f"{name}={value}")


def quote(text: str) -> str:
    """Quote one word for a directive in which specifiers are expanded and variables are not."""
    return _quoted(text).replace("%", "%%")


def decode(text: str) -> tuple[str, ...]:
    """Read the words of one ``Exec...=`` value; the inverse of ``encode``.

    Raises RenderError for whatever is not exactly one known argument list.
    """
    return tuple(_expanded(word) for word in _words(text))


def parse_command_line(text: str) -> tuple[str, ...]:
    """Read a whole ``Exec...=`` value; the inverse of ``command_line``, with the same rules for the program."""
    argv = decode(text)
    if not argv:
        raise RenderError("an empty command line")
    _check_program(argv[0])
    return argv


def _quoted(text: str) -> str:
    check_text(text)
    return json.dumps(text, ensure_ascii=False)


def check_text(text: str) -> None:
    """Raise RenderError for characters that systemd drops a whole line for: surrogates, noncharacters, NUL."""
    match = _IMPOSSIBLE.search(text)
    if match:
        raise RenderError(f"a unit cannot hold the character U+{ord(match[0]):04X}", hint="systemd.syntax(7): UTF-8")


def _check_program(program: str) -> None:
    if program.startswith(tuple(_PREFIXES)) or program in {"", ";", ".", ".."}:
        raise RenderError(f"systemd would not read {program!r} as the name of a program")
    if "/" in program and not program.startswith("/"):
        raise RenderError(f"the program {program!r} must be an absolute path or a plain name")
    if "$" in program or _CONTROL.search(program):
        raise RenderError(
            f"the program {program!r} holds a dollar sign or a control character",
            hint="systemd.service(5): the program may hold neither",
        )


def _words(text: str) -> Iterator[str]:
    check_text(text)
    if "\n" in text or "\r" in text:
        raise RenderError("a command line is one line", hint="join continued lines first")
    at = 0
    while True:
        while at < len(text) and text[at] in _WHITE:
            at += 1
        if at == len(text):
            return
        word, at = _word(text, at)
        yield word


def _word(text: str, at: int) -> tuple[str, int]:
    """Read the word that starts at ``at``; return it and the place behind it."""
    bare = _bare(text, at)
    if bare == ";":
        raise RenderError("a lone ; separates two commands, and this is to be one", hint='write ";" or \\;')
    if bare == "\\;":
        return ";", at + 2
    quote = text[at] if text[at] in _QUOTES else ""
    at += len(quote)
    found = bytearray()
    while at < len(text) and (text[at] != quote if quote else text[at] not in _WHITE):
        if text[at] == "\\":
            value, at = _escape(text, at + 1)
            found += value
        elif not quote and text[at] in _QUOTES:
            raise RenderError(f"a quote inside a word, at column {at + 1}", hint="quote the whole word")
        else:
            found += text[at].encode()
            at += 1
    if quote:
        if at == len(text):
            raise RenderError(f"the quote {quote} is not closed")
        at += 1
        if at < len(text) and text[at] not in _WHITE:
            raise RenderError(f"text right behind a closing quote, at column {at + 1}", hint="quote the whole word")
    try:
        word = found.decode()
    except UnicodeDecodeError:
        raise RenderError("an argument's bytes are no UTF-8") from None
    check_text(word)
    return word, at


def _bare(text: str, at: int) -> str:
    match = re.compile(r"[^ \t]*").match(text, at)
    return match[0] if match else ""


def _escape(text: str, at: int) -> tuple[bytes, int]:
    """Read the escape whose backslash stands before ``at``; return its bytes and the place behind it."""
    if text[at : at + 1] in _SIMPLE and at < len(text):
        return _SIMPLE[text[at]].encode(), at + 1
    for pattern, base, is_byte in _NUMBERS:
        match = pattern.match(text, at)
        if match:
            code = int(match[1], base)
            if is_byte and 0 < code <= _BYTE:
                return bytes([code]), match.end()
            if not is_byte and 0 < code <= sys.maxunicode and not _IMPOSSIBLE.match(chr(code)):
                return chr(code).encode(), match.end()
            break
    raise RenderError(f"unknown escape \\{text[at : at + 1]}, at column {at}", hint="systemd.syntax(7), table 1")


def _expanded(word: str) -> str:
    """Undouble ``%``, then ``$``; refuse specifiers and variables, whose text is not known here."""
    lone = re.search(r"%(.?)", word.replace("%%", ""), re.DOTALL)
    if lone:
        raise RenderError(f"%{lone[1]} is a specifier or a bare percent sign in {word!r}", hint="a percent sign is %%")
    text = word.replace("%%", "%")
    lone = re.search(r"\$\{?\w*\}?", text.replace("$$", ""))
    if lone:
        raise RenderError(f"{lone[0]} is a variable or a bare dollar sign in {word!r}", hint="a dollar sign is $$")
    return text.replace("$$", "$")
